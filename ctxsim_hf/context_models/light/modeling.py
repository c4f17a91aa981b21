"""A bag of tokens -> the probability of another bag of tokens: Eq. 2 made cheap enough for one machine.

A source is the weighted mean of its tokens' input vectors, with one linear map for each direction; a target's tokens
are predicted independently of each other by one softmax over the vocabulary.

| direction | probability | source vector v |
|---|---|---|
| `sentence` | log p(s given c_<, c_>) | left_to_sentence(mean(c_<)) + right_to_sentence(mean(c_>)) |
| `left` | log p(c_< given s) | sentence_to_left(mean(s)) |
| `right` | log p(c_> given s) | sentence_to_right(mean(s)) |

Unlike in Eq. 2, the sides are conditioned on the sentence alone, so that every normaliser belongs to one sentence or
to one context, never to a pair. With O, B, n the sums over a target's tokens of output vectors, biases and ones,

    log p(target | source) = <v, O> + B - n * Z(v),      Z(v) = log sum_t exp(<v, o_t> + b_t)

so sentences x contexts is one matrix product, and the training loss needs one softmax per source, not one per token.
All that is needed of a sentence, as source or as target, are sums over its tokens: [`SentenceFactors`], computed once
for all of its contexts.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers import initialization as init
from transformers.utils import ModelOutput

from ctxsim_hf.context_models.input_checks import check_index, check_tokens, check_vocabulary
from ctxsim_hf.context_models.light.configuration import LightContextGeneratorConfig
from ctxsim_hf.context_models.light.sampled_normaliser import sampled_normaliser
from ctxsim_hf.context_models.terms import DIRECTIONS

SOURCES_PER_BLOCK = 1024  # sources whose logits over the vocabulary are in memory at a time when scoring


class SentenceFactors(NamedTuple):
    """The sums over tokens that scoring needs of sentences. A side of several sentences is the sum of theirs."""

    input_sum: torch.Tensor  # (sentences, hidden): weighted input vectors
    weight_sum: torch.Tensor  # (sentences,)
    output_sum: torch.Tensor  # (sentences, hidden): output vectors, O
    bias_sum: torch.Tensor  # (sentences,): B
    length: torch.Tensor  # (sentences,): tokens, n

    def mean(self) -> torch.Tensor:
        """Return the weighted means of the input vectors, zero for a sentence without tokens: (sentences, hidden)."""
        return self.input_sum / self.weight_sum.masked_fill(self.weight_sum == 0, 1)[:, None]

    def side(self, index: torch.Tensor) -> "SentenceFactors":
        """Return the factors of sides, given the indices of their sentences: (sides, width), -1 for none."""
        if index.shape[1] == 1 and bool((index >= 0).all()):
            return SentenceFactors(*(factor[index[:, 0]] for factor in self))
        real = index >= 0
        picked = [factor[index.clamp(min=0)] for factor in self]  # each (sides, width, ...)
        masks = [real.reshape(*real.shape, *[1] * (factor.dim() - 2)) for factor in picked]
        return SentenceFactors(*((factor * mask).sum(1) for factor, mask in zip(picked, masks, strict=True)))


@dataclass
class LightContextGeneratorOutput(ModelOutput):
    """Output of [`LightContextGeneratorModel`].

    Args:
        loss (`torch.FloatTensor`): Mean of the losses of the three directions.
        question_losses (`torch.FloatTensor` of shape `(3,)`): Cross entropy per target token, ordered as `DIRECTIONS`.
    """

    loss: torch.FloatTensor | None = None
    question_losses: torch.FloatTensor | None = None


class LightContextGeneratorModel(PreTrainedModel):
    r"""A softmax over the vocabulary, given the weighted mean of token vectors.

    Its parameters, which closed_form.py sets directly:

    - `input_embeddings.weight` (vocabulary, hidden): the vector of a token as part of a source.
    - `token_weight_logits` (vocabulary,): its sigmoid is the weight of a token in the mean of its source.
    - `left_to_sentence`, `right_to_sentence`, `sentence_to_left`, `sentence_to_right` `.weight` (hidden, hidden): the
      linear maps of each direction, without bias, initialised to the identity.
    - `output_embeddings.weight` (vocabulary, hidden): the vector of a token as part of a target.
    - `output_bias` (vocabulary,): the logit of a token given a zero source, its unigram log-probability.
    """

    config: LightContextGeneratorConfig
    base_model_prefix = "light_generator"
    main_input_name = "input_ids"
    _input_embed_layer = "input_embeddings"

    def __init__(self, config: LightContextGeneratorConfig) -> None:
        super().__init__(config)
        size = config.hidden_size
        self.input_embeddings = nn.Embedding(config.vocab_size, size)
        self.token_weight_logits = nn.Parameter(torch.zeros(config.vocab_size))
        self.left_to_sentence = nn.Linear(size, size, bias=False)
        self.right_to_sentence = nn.Linear(size, size, bias=False)
        self.sentence_to_left = nn.Linear(size, size, bias=False)
        self.sentence_to_right = nn.Linear(size, size, bias=False)
        self.output_embeddings = nn.Embedding(config.vocab_size, size)
        self.output_bias = nn.Parameter(torch.zeros(config.vocab_size))
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear):
            init.eye_(module.weight)
        elif module is self:
            init.zeros_(self.token_weight_logits)
            init.zeros_(self.output_bias)
        else:
            super()._init_weights(module)

    @torch.no_grad()
    def set_unigram_counts(self, counts: torch.Tensor) -> None:
        """Initialise from token counts (vocabulary,): biases from log-frequencies, token weights as in SIF."""
        if counts.shape != self.output_bias.shape:
            expected = self.config.vocab_size
            raise ValueError(f"`counts` must have one number per token, {expected}, got {tuple(counts.shape)}.")
        smoothed = counts.to(self.output_bias.device, torch.float64) + 1  # so that unseen tokens are possible
        log_frequency = (smoothed / smoothed.sum()).log()
        self.output_bias.copy_(log_frequency)
        # sigmoid(log a - log p) = a / (a + p)
        self.token_weight_logits.copy_(math.log(self.config.sif_smoothing) - log_frequency)

    def encode_sentences(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> SentenceFactors:
        """Return the factors of sentences, which may be padded anywhere: (sentences, tokens), end token included."""
        check_tokens(input_ids, attention_mask)
        check_vocabulary(input_ids, self.config.vocab_size)
        real = attention_mask != 0
        ids, length = input_ids[real], real.sum(1)  # (tokens,), (sentences,): nothing is computed for padding
        starts = length.cumsum(0) - length
        weights = torch.sigmoid(self.token_weight_logits)[ids]

        def add_up(table: torch.Tensor, weights: torch.Tensor | None = None) -> torch.Tensor:
            return nn.functional.embedding_bag(ids, table, starts, per_sample_weights=weights, mode="sum")

        def add_up_numbers(numbers: torch.Tensor) -> torch.Tensor:
            return numbers.new_zeros(input_ids.shape).masked_scatter(real, numbers).sum(1)

        return SentenceFactors(
            input_sum=add_up(self.input_embeddings.weight, weights),
            weight_sum=add_up_numbers(weights),
            output_sum=add_up(self.output_embeddings.weight),
            bias_sum=add_up_numbers(self.output_bias[ids]),
            length=length,
        )

    def encode_places(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        left_index: torch.Tensor,
        sentence_index: torch.Tensor,
        right_index: torch.Tensor,
    ) -> dict[str, SentenceFactors]:
        """Return the factors of the sentences and of the sides of contexts; for the arguments, see `forward`."""
        factors = self.encode_sentences(input_ids, attention_mask)
        indices = {"sentence": sentence_index[:, None], "left": left_index, "right": right_index}
        return {place: factors.side(index) for place, index in indices.items()}

    def source(self, direction: str, **places: SentenceFactors) -> torch.Tensor:
        """Return source vectors (rows, hidden): `source("sentence", left=..., right=...)`,
        `source("left", sentence=...)` or `source("right", sentence=...)`."""
        maps: dict[str, dict[str, Callable[[torch.Tensor], torch.Tensor]]] = {
            "sentence": {"left": self.left_to_sentence, "right": self.right_to_sentence},
            "left": {"sentence": self.sentence_to_left},
            "right": {"sentence": self.sentence_to_right},
        }
        if direction not in maps or maps[direction].keys() != places.keys():
            expected = "; ".join(f"{name!r} from {' and '.join(needed)}" for name, needed in maps.items())
            raise ValueError(f"Sources are made for {expected}; got {direction!r} from {' and '.join(places)}.")
        return torch.stack([maps[direction][name](factors.mean()) for name, factors in places.items()]).sum(0)

    def normalisers(self, source: torch.Tensor) -> torch.Tensor:
        """Return Z of each source: (sources, hidden) -> (sources,)."""
        return torch.cat([self._logits(block).logsumexp(1) for block in source.split(SOURCES_PER_BLOCK)])

    def _logits(self, source: torch.Tensor) -> torch.Tensor:
        return torch.addmm(self.output_bias, source, self.output_embeddings.weight.T)  # (sources, vocabulary)

    @staticmethod
    def log_prob_matrix(source: torch.Tensor, normaliser: torch.Tensor, target: SentenceFactors) -> torch.Tensor:
        """Return log p of every target given every source: (sources, targets)."""
        fit = torch.addmm(target.bias_sum, source, target.output_sum.T)
        return fit - normaliser[:, None] * target.length

    @staticmethod
    def log_prob(source: torch.Tensor, normaliser: torch.Tensor, target: SentenceFactors) -> torch.Tensor:
        """Return log p of each target given the source of the same row, the diagonal of the matrix: (rows,)."""
        return (source * target.output_sum).sum(1) + target.bias_sum - normaliser * target.length

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        left_index: torch.Tensor,
        sentence_index: torch.Tensor,
        right_index: torch.Tensor,
        sampled_ids: torch.Tensor | None = None,
    ) -> LightContextGeneratorOutput:
        r"""Compute the losses of predicting each place from the others; the inputs are the labels.

        Args:
            input_ids, attention_mask (`(sentences, tokens)`): Distinct sentences, end tokens included.
            left_index, right_index (`(batch, width)`): The sentences on the sides of each context, -1 for none.
            sentence_index (`(batch,)`): The sentence of each context.
            sampled_ids (`(samples,)`, *optional*): Distinct token ids, drawn uniformly, that stand for all the tokens
                that do not occur in this batch. None draws `config.num_sampled` in training, and uses all tokens
                outside training or if that is 0.
        """
        check_index(len(input_ids), left_index=left_index, right_index=right_index, sentence_index=sentence_index)
        if sentence_index.dim() != 1:
            raise ValueError(f"`sentence_index` must be (batch,), got the shape {tuple(sentence_index.shape)}.")
        places = self.encode_places(input_ids, attention_mask, left_index, sentence_index, right_index)
        source = torch.cat(
            [
                self.source("sentence", left=places["left"], right=places["right"]),
                self.source("left", sentence=places["sentence"]),
                self.source("right", sentence=places["sentence"]),
            ]
        )  # (3 * batch, hidden), in the order DIRECTIONS
        if sampled_ids is None and self.training and self.config.num_sampled:
            sampled_ids = torch.randperm(self.config.vocab_size, device=source.device)[: self.config.num_sampled]
        if sampled_ids is None:
            normaliser = self.normalisers(source)
        else:
            own = input_ids[attention_mask != 0]
            normaliser = sampled_normaliser(source, own, sampled_ids, self.output_embeddings.weight, self.output_bias)
        question_losses = []
        for direction, v, z in zip(DIRECTIONS, source.chunk(3), normaliser.chunk(3), strict=True):
            target = places[direction]
            question_losses.append(-self.log_prob(v, z, target).sum() / target.length.sum().clamp(min=1))
        losses = torch.stack(question_losses)
        return LightContextGeneratorOutput(loss=losses.mean(), question_losses=losses.detach())  # type: ignore[arg-type]
