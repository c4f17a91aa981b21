"""Contexts -> the tensors a model's `forward` takes.

Negatives are drawn from a generator that the caller seeds with the step, so a resumed run repeats them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ctxsim_hf.corpus.tokenized import TokenizedChunks
from ctxsim_hf.models.configuration_ctxsim import DIRECTIONS

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
class GeneratorCollator:
    """Contexts as source and target of a seq2seq generator.

    A source is `<s>`, then its sentences in reading order, each closed by `</s>`; `sentence_ids` number the places of
    the window, the one to be generated included. A target is its sentences, each closed by `</s>`.
    """

    chunks: TokenizedChunks
    width: int
    max_sentence_tokens: int
    special: SpecialIds
    one_model_for_all: bool = False  # it wants `direction_ids`

    def lengths(self, contexts: np.ndarray, direction: str) -> tuple[np.ndarray, np.ndarray]:
        """Tokens of each context's source and target."""
        tokens = np.minimum(self.chunks.lengths, self.max_sentence_tokens) + 1
        left, right = self.chunks.neighbours(contexts, self.width)
        sizes = {
            "left": np.where(left >= 0, tokens[left], 0).sum(1),
            "sentence": tokens[contexts],
            "right": np.where(right >= 0, tokens[right], 0).sum(1),
        }
        target = sizes.pop(direction)
        return 1 + sum(sizes.values()), target

    def __call__(self, contexts: np.ndarray, direction: str) -> Tensors:
        left, right = self.chunks.neighbours(contexts, self.width)
        # (contexts, window): the place in the window is the position in the row, -1 where no sentence is
        window = np.concatenate([left[:, ::-1], contexts[:, None], right], axis=1)
        wanted = {
            "left": range(self.width),
            "sentence": [self.width],
            "right": range(self.width + 1, 2 * self.width + 1),
        }[direction]
        given = [place for place in range(window.shape[1]) if place not in wanted]
        sources = [self._join(row, given, start=[self.special.bos]) for row in window]
        targets = [self._join(row, wanted, start=[]) for row in window]
        pad = self.special.pad
        tensors = {
            "input_ids": _stack([ids for ids, _ in sources], pad),
            "attention_mask": _stack([np.ones_like(ids) for ids, _ in sources], 0),
            "sentence_ids": _stack([places for _, places in sources], 0),
            "labels": _stack([ids for ids, _ in targets], -100),
        }
        if self.one_model_for_all:
            tensors["direction_ids"] = torch.full((len(contexts),), DIRECTIONS.index(direction))
        return tensors

    def _join(self, window: np.ndarray, places: Sequence[int], start: list[int]) -> tuple[np.ndarray, np.ndarray]:
        ids, numbers = [np.array(start, dtype=np.int64)], [np.zeros(len(start), dtype=np.int64)]
        for place in places:
            if window[place] >= 0:
                first, end = self.chunks.sentence_starts[window[place] : window[place] + 2]
                tokens = self.chunks.tokens[first : min(end, first + self.max_sentence_tokens)]
                ids += [tokens.astype(np.int64), np.array([self.special.eos])]
                numbers.append(np.full(len(tokens) + 1, place))
        return np.concatenate(ids), np.concatenate(numbers)


def _stack(rows: list[np.ndarray], padding: int) -> torch.Tensor:
    matrix = np.full((len(rows), max(map(len, rows))), padding, dtype=np.int64)
    for number, row in enumerate(rows):
        matrix[number, : len(row)] = row
    return torch.from_numpy(matrix)
