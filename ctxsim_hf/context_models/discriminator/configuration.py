"""The configuration of the discriminator."""

from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig

from ctxsim_hf.context_models.config_checks import expect_at_least, expect_choice, expect_probability, expect_token_ids

HEADS = ("mlp", "linear")


@strict
class ContextDiscriminatorConfig(PreTrainedConfig):
    r"""Configuration of [`ContextDiscriminatorModel`].

    Args:
        vocab_size (`int`, defaults to 32000): Number of token ids.
        embedding_size (`int`, defaults to 300): Size of the token embeddings.
        hidden_size (`int`, defaults to 300): Size of one LSTM direction, as in the paper; a sentence has twice that.
        head (`str`, defaults to `"mlp"`): `"linear"` is exactly Eq. 1, one linear layer over
            [left, sentence, right]. It ranks contexts the same for every sentence, because its score is the sum of
            a context term and a sentence term; `"mlp"` adds a hidden layer and has no such limit.
        head_size (`int`, defaults to 300): Size of the hidden layer of the mlp head; the linear head ignores it.
        dropout (`float`, defaults to 0.1): Dropout on token embeddings and on the hidden layer of the head.
        initializer_range (`float`, defaults to 0.1): Standard deviation of initial token embeddings and head weights.
        width (`int`, defaults to 1): Number of sentences that the model reads on each side of a context.
        max_sentence_tokens (`int`, defaults to 64): Longer sentences are truncated.
    """

    model_type = "ctxsim_discriminator"

    vocab_size: int = 32000
    embedding_size: int = 300
    hidden_size: int = 300
    head: str = "mlp"
    head_size: int = 300
    dropout: float | int = 0.1
    initializer_range: float | int = 0.1
    width: int = 1
    max_sentence_tokens: int = 64
    bos_token_id: int | None = 0
    pad_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2

    def validate_sizes(self) -> None:
        expect_at_least(1, vocab_size=self.vocab_size, embedding_size=self.embedding_size)
        expect_at_least(1, hidden_size=self.hidden_size, head_size=self.head_size)
        expect_at_least(1, width=self.width, max_sentence_tokens=self.max_sentence_tokens)
        expect_probability(dropout=self.dropout)
        expect_token_ids(self.vocab_size, pad_token_id=self.pad_token_id)

    def validate_head(self) -> None:
        expect_choice("head", self.head, HEADS)
