"""Tokenised sentences -> the tensors of our own models, truncated and with end tokens as in training."""

from dataclasses import dataclass

import numpy as np
import torch
from transformers import TokenizersBackend

from ctxsim_hf.text.tokenized import TokenizedSentences


@dataclass(frozen=True)
class SpecialIds:
    """The ids of the special tokens that our models use."""

    bos: int
    pad: int
    eos: int

    @classmethod
    def of(cls, tokenizer: TokenizersBackend) -> "SpecialIds":
        return cls(tokenizer.bos_token_id, tokenizer.pad_token_id, tokenizer.eos_token_id)


@dataclass(frozen=True)
class SentenceTensors:
    """Turns tokenised sentences into padded tensors."""

    special: SpecialIds
    max_sentence_tokens: int

    def __call__(self, sentences: TokenizedSentences, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the ids of all sentences, with end tokens and padded on the right, and the attention mask."""
        rows, special = np.arange(len(sentences)), self.special
        ids = torch.from_numpy(sentences.padded(rows, special.pad, self.max_sentence_tokens, special.eos))
        return ids.to(device), (ids != special.pad).long().to(device)
