"""The configuration of the light generator."""

from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig

from ctxsim_hf.context_models.config_checks import expect_at_least, expect_token_ids


@strict
class LightContextGeneratorConfig(PreTrainedConfig):
    r"""Configuration of [`LightContextGeneratorModel`].

    Args:
        vocab_size (`int`, defaults to 16000): Number of token ids.
        hidden_size (`int`, defaults to 256): Size of input, source and output vectors.
        num_sampled (`int`, defaults to 0): In training, the normaliser of a batch is estimated from the batch's own
            target tokens and this many others; 0 computes it exactly. Outside training it is always exact.
        sif_smoothing (`float`, defaults to 1e-3): `a` of the initial token weight a / (a + unigram probability).
        initializer_range (`float`, defaults to 0.1): Standard deviation of initial input vectors.
        width (`int`, defaults to 1): Number of sentences that the model reads on each side of a context.
        max_sentence_tokens (`int`, defaults to 64): Longer sentences are truncated.
    """

    model_type = "ctxsim_light_generator"

    vocab_size: int = 16000
    hidden_size: int = 256
    num_sampled: int = 0
    sif_smoothing: float | int = 1e-3
    initializer_range: float | int = 0.1
    width: int = 1
    max_sentence_tokens: int = 64
    bos_token_id: int | None = 0
    pad_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2

    def validate_sizes(self) -> None:
        expect_at_least(1, vocab_size=self.vocab_size, hidden_size=self.hidden_size)
        expect_at_least(1, width=self.width, max_sentence_tokens=self.max_sentence_tokens)
        expect_at_least(0, num_sampled=self.num_sampled)
        expect_token_ids(self.vocab_size, bos_token_id=self.bos_token_id, pad_token_id=self.pad_token_id)

    def validate_sif_smoothing(self) -> None:
        if self.sif_smoothing <= 0:
            raise ValueError(f"`sif_smoothing` must be above 0, got {self.sif_smoothing!r}.")
