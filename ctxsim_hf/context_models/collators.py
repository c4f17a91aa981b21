"""Contexts -> the tensors a model's `forward` takes.

Negatives are drawn from a generator that the caller seeds with the step, so a resumed run repeats them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from ctxsim_hf.context_models.configuration_ctxsim import DIRECTIONS
from ctxsim_hf.text.tokenized import TokenizedChunks, TokenizedSentences

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class SpecialIds:
    bos: int
    pad: int
    eos: int


@dataclass(frozen=True)
class SentenceCollator:
    """Contexts as sentences, each once, and index tensors that say where each stands. Serves the discriminator and the
    light generator."""

    chunks: TokenizedChunks
    width: int
    max_sentence_tokens: int
    special: SpecialIds

    def __call__(self, contexts: np.ndarray, candidates: np.ndarray | None = None) -> Tensors:
        """Tensors of these contexts; with `candidates` (contexts, number), sentences to try in each place."""
        left, right = self.chunks.neighbours(contexts, self.width)
        middle = contexts if candidates is None else candidates
        present, places = np.unique(np.concatenate([left.ravel(), middle.ravel(), right.ravel()]), return_inverse=True)
        if present[0] == -1:  # the sentence that is not there: left out of the matrix, and index -1 again
            present, places = present[1:], places - 1
        ids = self.chunks.padded(present, self.special.pad, self.max_sentence_tokens, self.special.eos)
        left_places, middle_places, right_places = np.split(places, [left.size, left.size + middle.size])
        return {
            "input_ids": torch.from_numpy(ids),
            "attention_mask": torch.from_numpy((ids != self.special.pad).astype(np.int64)),
            "left_index": torch.from_numpy(left_places.reshape(left.shape)),
            "sentence_index": torch.from_numpy(middle_places.reshape(middle.shape)),
            "right_index": torch.from_numpy(right_places.reshape(right.shape)),
        }


def draw_negatives(chunks: TokenizedChunks, contexts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Two replacements for the sentence of each context, (contexts, 2): one from its document, never the sentence
    itself nor a neighbour, and one from the other documents among these contexts. Where a document or the batch has no
    such sentence, the other kind serves twice."""
    documents = chunks.documents_of(contexts)
    firsts, ends = chunks.document_starts[documents], chunks.document_starts[documents + 1]
    others = ends - firsts - 3
    same = firsts + _below(others, rng)
    same += 3 * (same >= contexts - 1)

    pool = np.sort(contexts)
    before, after = np.searchsorted(pool, firsts), np.searchsorted(pool, ends)
    outside = len(pool) - (after - before)
    place = _below(outside, rng)
    place += (after - before) * (place >= before)
    other = pool[np.minimum(place, len(pool) - 1)]
    same = np.where(others > 0, same, other)
    return np.stack([same, np.where(outside > 0, other, same)], axis=1)


def _below(limits: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A uniform whole number from 0 to below each limit; 0 where the limit is not above 0."""
    return rng.integers(0, np.maximum(limits, 1))


@dataclass(frozen=True)
class WindowTokens:
    """Windows of sentences as sources and targets of a seq2seq generator.

    A window is a row of 2 * width + 1 sentences in reading order, -1 where there is none. A source is `<s>`, then its
    sentences, each closed by `</s>`; `sentence_ids` number the places of the window, the one to be generated included.
    A target is its sentences, each closed by `</s>`.
    """

    sentences: TokenizedSentences
    width: int
    max_sentence_tokens: int
    special: SpecialIds

    def wanted(self, direction: str) -> range:
        """The places that are generated."""
        ends = {"left": (0, self.width), "sentence": (self.width, self.width + 1)}
        return range(*ends.get(direction, (self.width + 1, 2 * self.width + 1)))

    def source(self, window: np.ndarray, direction: str) -> Tensors:
        given = [place for place in range(window.shape[1]) if place not in self.wanted(direction)]
        rows = [self._join(row, given, start=[self.special.bos]) for row in window]
        return {
            "input_ids": _stack([ids for ids, _ in rows], self.special.pad),
            "attention_mask": _stack([np.ones_like(ids) for ids, _ in rows], 0),
            "sentence_ids": _stack([places for _, places in rows], 0),
        }

    def target(self, window: np.ndarray, direction: str) -> torch.Tensor:
        return _stack([self._join(row, self.wanted(direction), start=[])[0] for row in window], -100)

    def lengths(self, window: np.ndarray, direction: str) -> tuple[np.ndarray, np.ndarray]:
        """Tokens of each window's source and target."""
        tokens = np.where(window >= 0, np.minimum(self.sentences.lengths, self.max_sentence_tokens)[window] + 1, 0)
        target = tokens[:, self.wanted(direction)].sum(1)
        return 1 + tokens.sum(1) - target, target

    def _join(self, window: np.ndarray, places: Sequence[int], start: list[int]) -> tuple[np.ndarray, np.ndarray]:
        ids, numbers = [np.array(start, dtype=np.int64)], [np.zeros(len(start), dtype=np.int64)]
        for place in places:
            if window[place] >= 0:
                first, end = self.sentences.sentence_starts[window[place] : window[place] + 2]
                tokens = self.sentences.tokens[first : min(end, first + self.max_sentence_tokens)]
                ids += [tokens.astype(np.int64), np.array([self.special.eos])]
                numbers.append(np.full(len(tokens) + 1, place))
        return np.concatenate(ids), np.concatenate(numbers)


@dataclass(frozen=True)
class GeneratorCollator:
    """Contexts as source and target of a seq2seq generator."""

    chunks: TokenizedChunks
    width: int
    max_sentence_tokens: int
    special: SpecialIds
    one_model_for_all: bool = False  # it wants `direction_ids`

    @cached_property
    def _tokens(self) -> WindowTokens:
        return WindowTokens(self.chunks, self.width, self.max_sentence_tokens, self.special)

    def _windows(self, contexts: np.ndarray) -> np.ndarray:
        left, right = self.chunks.neighbours(contexts, self.width)
        return np.concatenate([left[:, ::-1], contexts[:, None], right], axis=1)

    def lengths(self, contexts: np.ndarray, direction: str) -> tuple[np.ndarray, np.ndarray]:
        """Tokens of each context's source and target."""
        return self._tokens.lengths(self._windows(contexts), direction)

    def __call__(self, contexts: np.ndarray, direction: str) -> Tensors:
        windows = self._windows(contexts)
        tensors = self._tokens.source(windows, direction) | {"labels": self._tokens.target(windows, direction)}
        if self.one_model_for_all:
            tensors["direction_ids"] = torch.full((len(contexts),), DIRECTIONS.index(direction))
        return tensors


def _stack(rows: list[np.ndarray], padding: int) -> torch.Tensor:
    matrix = np.full((len(rows), max(map(len, rows))), padding, dtype=np.int64)
    for number, row in enumerate(rows):
        matrix[number, : len(row)] = row
    return torch.from_numpy(matrix)
