"""Windows of sentences -> sources and targets of the seq2seq generator."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from ctxsim_hf.context_models.collators import Tensors
from ctxsim_hf.context_models.sentence_tensors import SpecialIds
from ctxsim_hf.context_models.terms import DIRECTIONS
from ctxsim_hf.text.tokenized import TokenizedChunks, TokenizedSentences


@dataclass(frozen=True)
class WindowTokens:
    """Turns windows of sentences into sources and targets of a seq2seq generator.

    A window is a row of 2 * width + 1 sentences in reading order, -1 where there is none. A source is `<s>`, then its
    sentences, each followed by `</s>`; `sentence_ids` are positions in the window, the generated ones included. A
    target is its sentences, each followed by `</s>`.
    """

    sentences: TokenizedSentences
    width: int
    max_sentence_tokens: int
    special: SpecialIds

    def wanted(self, direction: str) -> range:
        """Return the positions that are generated."""
        ends = {"left": (0, self.width), "sentence": (self.width, self.width + 1)}
        return range(*ends.get(direction, (self.width + 1, 2 * self.width + 1)))

    def source(self, window: np.ndarray, direction: str) -> Tensors:
        """Return the tensors of the sources."""
        given = [place for place in range(window.shape[1]) if place not in self.wanted(direction)]
        rows = [self._join(row, given, start=[self.special.bos]) for row in window]
        return {
            "input_ids": _stack([ids for ids, _ in rows], self.special.pad),
            "attention_mask": _stack([np.ones_like(ids) for ids, _ in rows], 0),
            "sentence_ids": _stack([places for _, places in rows], 0),
        }

    def target(self, window: np.ndarray, direction: str) -> torch.Tensor:
        """Return the labels of the targets, -100 at padding."""
        return _stack([self._join(row, self.wanted(direction), start=[])[0] for row in window], -100)

    def lengths(self, window: np.ndarray, direction: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of tokens of the source and the target of each window."""
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
    """Turns contexts into sources and targets of a seq2seq generator."""

    chunks: TokenizedChunks
    width: int
    max_sentence_tokens: int
    special: SpecialIds
    one_model_for_all: bool = False  # whether to add `direction_ids`

    @cached_property
    def _tokens(self) -> WindowTokens:
        return WindowTokens(self.chunks, self.width, self.max_sentence_tokens, self.special)

    def _windows(self, contexts: np.ndarray) -> np.ndarray:
        left, right = self.chunks.neighbours(contexts, self.width)
        return np.concatenate([left[:, ::-1], contexts[:, None], right], axis=1)

    def lengths(self, contexts: np.ndarray, direction: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of tokens of the source and the target of each context."""
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
