"""Encoders that read the beginning of a text only, and can say of how many."""

from collections.abc import Callable, Sequence
from typing import Any

from ctxsim_hf.encoder.encoder_signal import Encode, EncoderSignal


class LimitedEncoder(EncoderSignal):
    """
    Args:
        encode: Texts to their vectors.
        tokenizer: Called as transformers' tokenizers are.
        max_tokens (`int`): What is read of a text, marks such as [CLS] included.
    """

    def __init__(self, encode: Encode, tokenizer: Callable[..., Any], max_tokens: int) -> None:
        super().__init__(encode)
        self.tokenizer, self.max_tokens = tokenizer, max_tokens

    def count_cut(self, texts: Sequence[str]) -> int:
        """Return how many texts are longer than what is read."""
        options = {"add_special_tokens": True, "truncation": False, "verbose": False}
        tokens = self.tokenizer(list(texts), **options)["input_ids"]
        return sum(len(ids) > self.max_tokens for ids in tokens)
