"""Sizes and choices of the contextual models, one strict configuration class per `model_type`.

| class | model_type | model | paper |
|---|---|---|---|
| `ContextDiscriminatorConfig` | `ctxsim_discriminator` | BiLSTM discriminator | Eq. 1 |
| `ContextGeneratorConfig` | `ctxsim_generator` | seq2seq Transformer generator | Eq. 2 |
| `LightContextGeneratorConfig` | `ctxsim_light_generator` | bag-of-words generator, one machine | Eq. 2, simplified |

Special ids are RoBERTa's: `<s>` 0, `<pad>` 1, `</s>` 2, `<unk>` 3. A wrong value raises
`StrictDataclassFieldValidationError` (type) or `StrictDataclassClassValidationError` (meaning).
"""

from huggingface_hub.dataclasses import strict
from transformers import BartConfig, PreTrainedConfig

DIRECTIONS = ("sentence", "left", "right")  # what is generated; the place in this tuple is the `direction_ids` value
HEADS = ("mlp", "linear")


def _expect_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"`{name}` must be one of {', '.join(map(repr, choices))}, got {value!r}.")


def _expect_at_least(minimum: int, **values: float | None) -> None:
    for name, value in values.items():
        if value is None or value < minimum:
            raise ValueError(f"`{name}` must be at least {minimum}, got {value!r}.")


def _expect_probability(**values: float | None) -> None:
    for name, value in values.items():
        if value is None or not 0 <= value < 1:
            raise ValueError(f"`{name}` must be at least 0 and below 1, got {value!r}.")


def _expect_token_ids(vocab_size: int, **ids: int | list[int] | None) -> None:
    for name, token_id in ids.items():
        if not isinstance(token_id, int) or not 0 <= token_id < vocab_size:
            raise ValueError(f"`{name}` must be an id from 0 to vocab_size - 1 = {vocab_size - 1}, got {token_id!r}.")


@strict
class ContextDiscriminatorConfig(PreTrainedConfig):
    r"""
    Args:
        vocab_size (`int`, defaults to 32000): Number of token ids.
        embedding_size (`int`, defaults to 300): Width of a token's input vector.
        hidden_size (`int`, defaults to 300): Width of one LSTM direction (the paper's 300); a sentence has twice that.
        head (`str`, defaults to `"mlp"`): `"linear"` is Eq. 1 to the letter, one linear layer over
            [left, sentence, right]. It orders the contexts of every sentence alike, because its score is a sum of
            a context term and a sentence term; `"mlp"` puts one hidden layer between and has no such limit.
        head_size (`int`, defaults to 300): Width of the hidden layer of the mlp head; the linear head ignores it.
        dropout (`float`, defaults to 0.1): On token vectors and on the hidden layer of the head.
        initializer_range (`float`, defaults to 0.1): Standard deviation of new token vectors and head weights.
    """

    model_type = "ctxsim_discriminator"

    vocab_size: int = 32000
    embedding_size: int = 300
    hidden_size: int = 300
    head: str = "mlp"
    head_size: int = 300
    dropout: float | int = 0.1
    initializer_range: float | int = 0.1
    bos_token_id: int | None = 0
    pad_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2

    def validate_sizes(self) -> None:
        _expect_at_least(1, vocab_size=self.vocab_size, embedding_size=self.embedding_size)
        _expect_at_least(1, hidden_size=self.hidden_size, head_size=self.head_size)
        _expect_probability(dropout=self.dropout)
        _expect_token_ids(self.vocab_size, pad_token_id=self.pad_token_id)

    def validate_head(self) -> None:
        _expect_choice("head", self.head, HEADS)


@strict
class ContextGeneratorConfig(BartConfig):
    r"""
    A [`BartConfig`] with the paper's sizes as defaults (6+6 layers, width 1024, 16 heads, ffn 4096) and:

    Args:
        direction (`str`, defaults to `"sentence"`): What the model generates: the `"sentence"` from both sides, the
            `"left"` side from sentence and right side, the `"right"` side from left side and sentence, or `"all"`:
            one model for the three, told by `direction_ids`.
        max_sentences (`int`, defaults to 5): Number of sentence positions in a window, 2 * width + 1 for up to
            `width` sentences on each side. Positions count through the whole window, the generated place included:
            left sentences end at width - 1, the sentence is at width, right sentences start at width + 1. So a
            sentence keeps its number in all directions, and the number left out tells where the hole is.
    """

    model_type = "ctxsim_generator"

    vocab_size: int = 32000
    encoder_layers: int | None = 6
    decoder_layers: int | None = 6
    direction: str = "sentence"
    max_sentences: int = 5

    def validate_direction(self) -> None:
        _expect_choice("direction", self.direction, (*DIRECTIONS, "all"))
        _expect_at_least(3, max_sentences=self.max_sentences)

    def validate_sizes(self) -> None:
        _expect_at_least(1, encoder_attention_heads=self.encoder_attention_heads, d_model=self.d_model)
        _expect_at_least(1, decoder_attention_heads=self.decoder_attention_heads, vocab_size=self.vocab_size)
        for name in ("encoder_attention_heads", "decoder_attention_heads"):
            heads = getattr(self, name)
            if self.d_model % heads:
                raise ValueError(f"`d_model` must be divisible by `{name}`, got {self.d_model} and {heads}.")
        _expect_token_ids(self.vocab_size, pad_token_id=self.pad_token_id, eos_token_id=self.eos_token_id)


@strict
class LightContextGeneratorConfig(PreTrainedConfig):
    r"""
    Args:
        vocab_size (`int`, defaults to 16000): Number of token ids.
        hidden_size (`int`, defaults to 256): Width of input vectors, source vectors and output vectors.
        num_sampled (`int`, defaults to 0): In training, the normaliser of a batch is estimated from the batch's own
            target tokens and this many others; 0 computes it in full. Outside training it is always in full.
        sif_smoothing (`float`, defaults to 1e-3): `a` of the starting token weight a / (a + unigram probability).
        initializer_range (`float`, defaults to 0.1): Standard deviation of new input vectors.
    """

    model_type = "ctxsim_light_generator"

    vocab_size: int = 16000
    hidden_size: int = 256
    num_sampled: int = 0
    sif_smoothing: float | int = 1e-3
    initializer_range: float | int = 0.1
    bos_token_id: int | None = 0
    pad_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2

    def validate_sizes(self) -> None:
        _expect_at_least(1, vocab_size=self.vocab_size, hidden_size=self.hidden_size)
        _expect_at_least(0, num_sampled=self.num_sampled)
        _expect_token_ids(self.vocab_size, bos_token_id=self.bos_token_id, pad_token_id=self.pad_token_id)

    def validate_sif_smoothing(self) -> None:
        if self.sif_smoothing <= 0:
            raise ValueError(f"`sif_smoothing` must be above 0, got {self.sif_smoothing!r}.")
