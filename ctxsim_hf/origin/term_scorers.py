"""The models of `ctxsim train` as scorers of the terms of Eq. 3: one class for each kind of model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch.nn.functional import logsigmoid
from transformers.modeling_outputs import BaseModelOutput

from ctxsim_hf.context_models.collators import SpecialIds, WindowTokens
from ctxsim_hf.context_models.configuration_ctxsim import DIRECTIONS
from ctxsim_hf.context_models.discriminator.modeling import ContextDiscriminatorModel
from ctxsim_hf.context_models.light.modeling import LightContextGeneratorModel, SentenceFactors
from ctxsim_hf.context_models.seq2seq.modeling import ContextGeneratorModel
from ctxsim_hf.origin.fit_score import ContextTokens
from ctxsim_hf.text.tokenized import TokenizedSentences

NUMBERS_PER_BLOCK = 1 << 22  # of (sentences, contexts, part) that the discriminator's head holds at a time
TOKENS_PER_BATCH = 4096  # of padded sources or targets that go through a seq2seq model together


@dataclass(frozen=True)
class TokenLimits:
    """How sentences become tensors; the same as in training."""

    special: SpecialIds
    max_sentence_tokens: int

    def tensors(self, store: TokenizedSentences, sentences: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        ids = torch.from_numpy(store.padded(sentences, self.special.pad, self.max_sentence_tokens, self.special.eos))
        return ids, (ids != self.special.pad).long()


class DiscriminatorScorer:
    terms: tuple[str, ...] = ("discriminative",)

    def __init__(self, model: ContextDiscriminatorModel, limits: TokenLimits) -> None:
        self.model, self.limits = model.eval(), limits

    @torch.inference_mode()
    def encode(self, store: TokenizedSentences, sentences: np.ndarray) -> torch.Tensor:
        """Sentence vectors, (sentences, 2 * hidden)."""
        ids, mask = self.limits.tensors(store, sentences)
        return self.model.encode_sentences(ids.to(self.model.device), mask.to(self.model.device))

    @torch.inference_mode()
    def prepare_sentences(self, sentences: TokenizedSentences) -> torch.Tensor:
        return self.model.sentence_part(self.encode(sentences, np.arange(len(sentences))))

    @torch.inference_mode()
    def prepare_contexts(self, contexts: ContextTokens) -> torch.Tensor:
        if contexts.discriminator_parts is not None:
            return contexts.discriminator_parts.to(self.model.device)
        sides, places = _present(contexts.left, contexts.right)
        vectors = self.encode(contexts.sentences, sides)
        left, right = (
            self.model.side_vector(vectors[place.clamp(min=0)], place >= 0) for place in places.to(vectors.device)
        )
        return self.model.context_part(left, right)

    @torch.inference_mode()
    def score(self, term: str, sentences: torch.Tensor, contexts: torch.Tensor) -> torch.Tensor:
        rows = max(1, NUMBERS_PER_BLOCK // max(1, contexts.numel()))
        blocks = [
            logsigmoid(self.model.score_parts(contexts, block[:, None])).cpu() for block in sentences.split(rows)
        ]
        return torch.cat(blocks) if blocks else torch.zeros(0, len(contexts))


class LightSentences:
    """Sentences as targets, and, for a direction that is asked for, as sources with their normalisers."""

    def __init__(self, model: LightContextGeneratorModel, factors: SentenceFactors) -> None:
        self.model, self.factors = model, factors
        self._sources: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}

    def source(self, direction: str) -> tuple[torch.Tensor, torch.Tensor]:
        if direction not in self._sources:
            source = self.model.source(direction, sentence=self.factors)
            self._sources[direction] = source, self.model.normalisers(source)
        return self._sources[direction]


class LightContexts:
    """The sides of contexts as targets, and, when asked for, the contexts as sources with their normalisers."""

    def __init__(
        self, model: LightContextGeneratorModel, sides: dict[str, SentenceFactors], normalisers: torch.Tensor | None
    ) -> None:
        self.model, self.sides, self._stored = model, sides, normalisers

    @cached_property
    def source(self) -> tuple[torch.Tensor, torch.Tensor]:
        source = self.model.source("sentence", **self.sides)
        stored = self._stored
        return source, self.model.normalisers(source) if stored is None else stored.to(source.device)


class LightGeneratorScorer:
    terms: tuple[str, ...] = DIRECTIONS

    def __init__(self, model: LightContextGeneratorModel, limits: TokenLimits) -> None:
        self.model, self.limits = model.eval(), limits

    def _factors(self, store: TokenizedSentences, sentences: np.ndarray) -> SentenceFactors:
        ids, mask = self.limits.tensors(store, sentences)
        return self.model.encode_sentences(ids.to(self.model.device), mask.to(self.model.device))

    @torch.inference_mode()
    def prepare_sentences(self, sentences: TokenizedSentences) -> LightSentences:
        return LightSentences(self.model, self._factors(sentences, np.arange(len(sentences))))

    @torch.inference_mode()
    def prepare_contexts(self, contexts: ContextTokens) -> LightContexts:
        present, places = _present(contexts.left, contexts.right)
        factors = self._factors(contexts.sentences, present)
        sides = zip(("left", "right"), places.to(self.model.device), strict=True)
        return LightContexts(self.model, {name: factors.side(place) for name, place in sides}, contexts.normalisers)

    @torch.inference_mode()
    def score(self, term: str, sentences: LightSentences, contexts: LightContexts) -> torch.Tensor:
        if term == "sentence":
            target = sentences.factors
            return (self.model.log_prob_matrix(*contexts.source, target).T / target.length[:, None]).cpu()
        target = contexts.sides[term]
        return (self.model.log_prob_matrix(*sentences.source(term), target) / target.length).cpu()


class Seq2SeqScorer:
    """The paper's generators. The source of the question `sentence` is a context alone, so it is encoded once for all
    sentences; the other two questions have a source of their own for every pair."""

    def __init__(self, models: Mapping[str, ContextGeneratorModel], limits: TokenLimits) -> None:
        """`models` maps a direction, or `all`, to its model."""
        self.models = {name: model.eval() for name, model in models.items()}
        self.limits = limits
        self.terms = DIRECTIONS if "all" in models else tuple(name for name in DIRECTIONS if name in models)

    def prepare_sentences(self, sentences: TokenizedSentences) -> TokenizedSentences:
        return sentences

    def prepare_contexts(self, contexts: ContextTokens) -> "EncodedContexts":
        return EncodedContexts(self, contexts)

    @torch.inference_mode()
    def score(self, term: str, sentences: TokenizedSentences, contexts: "EncodedContexts") -> torch.Tensor:
        shape = (len(sentences), len(contexts.tokens))
        if not all(shape):
            return torch.zeros(shape)
        windows, tokens = contexts.windows_with(sentences)  # (sentences, contexts, window)
        windows = windows.reshape(-1, windows.shape[-1])
        source_lengths, target_lengths = tokens.lengths(windows, term)
        found = torch.zeros(len(windows))
        order = np.lexsort((source_lengths, target_lengths))
        for rows in _batches(order, source_lengths + target_lengths):
            labels = tokens.target(windows[rows], term).to(self._model(term).device)
            if term == "sentence":
                states, mask = contexts.encoded(rows % shape[1])
                scores = self._model(term).log_prob(None, mask, None, labels, encoder_outputs=states)
            else:
                source = self._source(tokens, windows[rows], term)
                scores = self._model(term).log_prob(labels=labels, **source)
            found[rows] = (scores / self._model(term).target_lengths(labels)).cpu()
        return found.reshape(shape)

    def _model(self, term: str) -> ContextGeneratorModel:
        return self.models["all"] if "all" in self.models else self.models[term]

    def _source(self, tokens: WindowTokens, windows: np.ndarray, term: str) -> dict[str, torch.Tensor]:
        source = tokens.source(windows, term)
        if "all" in self.models:
            source["direction_ids"] = torch.full((len(windows),), DIRECTIONS.index(term))
        return {name: tensor.to(self._model(term).device) for name, tensor in source.items()}

    @torch.inference_mode()
    def encode_sources(self, tokens: WindowTokens, windows: np.ndarray) -> list[torch.Tensor]:
        """Encoder states of the question `sentence`, one (tokens, width) for each window."""
        lengths, _ = tokens.lengths(windows, "sentence")
        states: list[torch.Tensor] = [torch.empty(0)] * len(windows)
        for rows in _batches(np.argsort(lengths, kind="stable"), lengths):
            encoded = self._model("sentence").encode(**self._source(tokens, windows[rows], "sentence"))
            for row, state in zip(rows, encoded.last_hidden_state, strict=True):
                states[row] = state[: lengths[row]].clone()
        return states


class EncodedContexts:
    """Contexts and, as soon as someone asks, their encoder states."""

    def __init__(self, scorer: Seq2SeqScorer, contexts: ContextTokens) -> None:
        self.scorer = scorer
        present, (left, right) = _present(contexts.left, contexts.right)
        self.tokens = ContextTokens(contexts.sentences.pick(present), left.numpy(), right.numpy())

    def windows_with(self, sentences: TokenizedSentences) -> tuple[np.ndarray, WindowTokens]:
        """Every sentence in the middle of every context: (sentences, contexts, window), and where its tokens are."""
        left, right = self.tokens.left, self.tokens.right
        middle = len(self.tokens.sentences) + np.arange(len(sentences))
        shape = (len(sentences), len(left))
        windows = np.concatenate(
            [
                np.broadcast_to(left[:, ::-1], (*shape, left.shape[1])),
                np.broadcast_to(middle[:, None, None], (*shape, 1)),
                np.broadcast_to(right, (*shape, right.shape[1])),
            ],
            axis=-1,
        )
        limits, store = self.scorer.limits, self.tokens.sentences.followed_by(sentences)
        return windows, WindowTokens(store, left.shape[1], limits.max_sentence_tokens, limits.special)

    @cached_property
    def _states(self) -> list[torch.Tensor]:
        no_sentence = TokenizedSentences(self.tokens.sentences.tokens[:0], np.zeros(2, dtype=np.int64))
        windows, tokens = self.windows_with(no_sentence)
        return self.scorer.encode_sources(tokens, windows[0])

    def encoded(self, contexts: np.ndarray) -> tuple[BaseModelOutput, torch.Tensor]:
        """Padded states of these contexts, and their mask."""
        states = [self._states[context] for context in contexts]
        mask = torch.nn.utils.rnn.pad_sequence([state.new_ones(len(state)).long() for state in states], True)
        padded = torch.nn.utils.rnn.pad_sequence(states, True)
        return BaseModelOutput(last_hidden_state=padded), mask


def _present(*sides: np.ndarray) -> tuple[np.ndarray, torch.Tensor]:
    """The sentences that stand in these sides, each once, and the sides as places among them (-1 for none)."""
    stacked = np.stack(sides)
    present, places = np.unique(stacked, return_inverse=True)
    if len(present) and present[0] == -1:
        present, places = present[1:], places - 1
    return present, torch.from_numpy(places.reshape(stacked.shape))


def _batches(order: np.ndarray, lengths: np.ndarray) -> Iterator[np.ndarray]:
    """Rows in this order, as many together as the token budget allows with padding to the longest, at least one."""
    start = 0
    longest = 0
    for place, row in enumerate(order):
        longest = max(longest, int(lengths[row]))
        if place > start and longest * (place + 1 - start) > TOKENS_PER_BATCH:
            yield order[start:place]
            start, longest = place, int(lengths[row])
    if len(order):
        yield order[start:]


def generator_scorer(
    models: Sequence[ContextGeneratorModel | LightContextGeneratorModel], limits: TokenLimits
) -> LightGeneratorScorer | Seq2SeqScorer:
    """The scorer for a light generator, or for seq2seq generators of different directions."""
    first = models[0]
    if isinstance(first, LightContextGeneratorModel):
        return LightGeneratorScorer(first, limits)
    return Seq2SeqScorer({model.config.direction: model for model in models}, limits)
