"""Contexts -> the tensors that the `forward` of a model takes.

Negatives are drawn from a generator that the caller seeds with the step, so a resumed run repeats them.
"""

from dataclasses import dataclass

import numpy as np
import torch

from ctxsim_hf.context_models.sentence_tensors import SpecialIds
from ctxsim_hf.text.tokenized import TokenizedChunks

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class SentenceCollator:
    """Turns contexts into a matrix of their distinct sentences and index tensors into it, for the discriminator and
    the light generator."""

    chunks: TokenizedChunks
    width: int
    max_sentence_tokens: int
    special: SpecialIds

    def __call__(self, contexts: np.ndarray, candidates: np.ndarray | None = None) -> Tensors:
        """Return the tensors of contexts. `candidates` (contexts, number), unless None, replace the sentences."""
        left, right = self.chunks.neighbours(contexts, self.width)
        middle = contexts if candidates is None else candidates
        present, places = np.unique(np.concatenate([left.ravel(), middle.ravel(), right.ravel()]), return_inverse=True)
        if present[0] == -1:  # a missing sentence: leave it out of the matrix and keep the index -1
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
    """Draw two replacements for the sentence of each context, (contexts, 2): one from the same document, but neither
    the sentence nor a neighbour, and one from the other documents in the batch. If there is no sentence of one kind,
    the other kind is used twice."""
    documents = chunks.documents_of(contexts)
    firsts, ends = chunks.document_starts[documents], chunks.document_starts[documents + 1]
    others = ends - firsts - 3
    same = firsts + _integers_below(others, rng)
    same += 3 * (same >= contexts - 1)

    pool = np.sort(contexts)
    before, after = np.searchsorted(pool, firsts), np.searchsorted(pool, ends)
    outside = len(pool) - (after - before)
    place = _integers_below(outside, rng)
    place += (after - before) * (place >= before)
    other = pool[np.minimum(place, len(pool) - 1)]
    same = np.where(others > 0, same, other)
    return np.stack([same, np.where(outside > 0, other, same)], axis=1)


def _integers_below(limits: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw a uniform integer from 0 to below each limit, or 0 if the limit is not positive."""
    return rng.integers(0, np.maximum(limits, 1))
