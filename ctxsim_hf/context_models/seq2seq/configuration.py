"""The configuration of the seq2seq generator."""

from huggingface_hub.dataclasses import strict
from transformers import BartConfig

from ctxsim_hf.context_models.config_checks import expect_at_least, expect_choice, expect_token_ids
from ctxsim_hf.context_models.terms import DIRECTIONS


@strict
class ContextGeneratorConfig(BartConfig):
    r"""Configuration of [`ContextGeneratorModel`].

    It is a [`BartConfig`] with the sizes of the paper as defaults (6+6 layers, width 1024, 16 heads, ffn 4096) and:

    Args:
        direction (`str`, defaults to `"sentence"`): What the model generates: the `"sentence"` from both sides, the
            `"left"` side from sentence and right side, the `"right"` side from left side and sentence, or `"all"`:
            one model for all three, selected by `direction_ids`.
        max_sentences (`int`, defaults to 5): Number of sentence positions in a window, 2 * width + 1 for up to
            `width` sentences on each side. Positions count through the whole window, the generated place included:
            left sentences end at width - 1, the sentence is at width, right sentences start at width + 1. So a
            sentence has the same number in all directions, and the missing number tells what to generate.
        max_sentence_tokens (`int`, defaults to 64): Longer sentences are truncated.
    """

    model_type = "ctxsim_generator"

    vocab_size: int = 32000
    encoder_layers: int | None = 6
    decoder_layers: int | None = 6
    direction: str = "sentence"
    max_sentences: int = 5
    max_sentence_tokens: int = 64

    @property
    def width(self) -> int:
        """Return the number of sentences that the model reads on each side of a context."""
        return (self.max_sentences - 1) // 2

    def validate_direction(self) -> None:
        expect_choice("direction", self.direction, (*DIRECTIONS, "all"))
        expect_at_least(3, max_sentences=self.max_sentences)
        expect_at_least(1, max_sentence_tokens=self.max_sentence_tokens)

    def validate_sizes(self) -> None:
        expect_at_least(1, encoder_attention_heads=self.encoder_attention_heads, d_model=self.d_model)
        expect_at_least(1, decoder_attention_heads=self.decoder_attention_heads, vocab_size=self.vocab_size)
        for name in ("encoder_attention_heads", "decoder_attention_heads"):
            heads = getattr(self, name)
            if self.d_model % heads:
                raise ValueError(f"`d_model` must be divisible by `{name}`, got {self.d_model} and {heads}.")
        expect_token_ids(self.vocab_size, pad_token_id=self.pad_token_id, eos_token_id=self.eos_token_id)
