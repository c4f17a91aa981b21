"""Unit vectors -> the pairs of the highest cosine, exactly and in little memory.

Cosines are computed block by block above the diagonal, so each pair once, and only those that reach the threshold are
kept. Where they become more than `max_pairs`, the threshold rises to the lowest of the best: memory holds one block
of cosines and at most twice `max_pairs`, whatever the number of sentences. The vectors may be memory-mapped.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

ROWS, COLUMNS = 1024, 8192  # of a block: 32 MB of cosines
ROUNDING = 1e-5  # a cosine of a block may be so much lower than the exact one


class MinedPairs(NamedTuple):
    """Pairs, the most similar first."""

    places: np.ndarray  # (pairs, 2), the lower place first
    similarities: np.ndarray  # (pairs,)


def mine_pairs(vectors: np.ndarray, threshold: float, max_pairs: int = 500_000) -> MinedPairs:
    """Return the pairs whose cosine is at least the threshold, at most `max_pairs`: those of the highest cosine.

    Args:
        vectors (`np.ndarray`): Vectors of length 1, (sentences, vector size), float32.
        threshold (`float`): The lowest cosine.
        max_pairs (`int`): The highest number of pairs.
    """
    best = _BestPairs(threshold - ROUNDING, max_pairs)
    for row, column, cosines in blocks_above_diagonal(vectors):
        best.add(row, column, cosines)
    places = best.places()
    similarities = pair_cosines(vectors, places)
    order = np.lexsort((places[:, 1], places[:, 0], -similarities))
    order = order[similarities[order] >= threshold][:max_pairs]
    return MinedPairs(places[order], similarities[order])


def pair_cosines(vectors: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the cosine of each pair of places, summed in double precision: (pairs,)."""
    parts = [
        np.einsum("ij,ij->i", vectors[part[:, 0]], vectors[part[:, 1]], dtype=np.float64)
        for part in np.array_split(places, max(1, len(places) // COLUMNS))
    ]
    return np.concatenate(parts)


class _BestPairs:
    """The best pairs seen so far."""

    def __init__(self, floor: float, max_pairs: int) -> None:
        self.floor, self.max_pairs = floor, max_pairs
        self.size = 0
        self._parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # rows, columns, cosines

    def add(self, row: int, column: int, cosines: np.ndarray) -> None:
        """Keep what reaches the floor in a block that begins at a row and a column."""
        found = np.flatnonzero(cosines >= self.floor)
        rows, columns = found // cosines.shape[1] + row, found % cosines.shape[1] + column
        above = rows < columns  # a block on the diagonal has every pair twice
        self._parts.append((rows[above], columns[above], cosines.ravel()[found[above]]))
        self.size += int(above.sum())
        if self.size > 2 * self.max_pairs:
            self._drop_lowest()

    def _drop_lowest(self) -> None:
        rows, columns, cosines = (np.concatenate(parts) for parts in zip(*self._parts, strict=True))
        kept = np.argpartition(-cosines, self.max_pairs)[: self.max_pairs]
        self._parts = [(rows[kept], columns[kept], cosines[kept])]
        self.size = self.max_pairs
        # What equals the lowest is not better: many equal sentences would be kept and dropped again and again.
        self.floor = float(np.nextafter(cosines[kept].min(), np.float32(2)))

    def places(self) -> np.ndarray:
        """Return the pairs in no order, (pairs, 2)."""
        if not self._parts:
            return np.zeros((0, 2), np.int64)
        rows, columns, _ = (np.concatenate(parts) for parts in zip(*self._parts, strict=True))
        return np.stack([rows, columns], axis=1)


def blocks_above_diagonal(vectors: np.ndarray) -> Iterator[tuple[int, int, np.ndarray]]:
    """Yield the first row, the first column and the cosines of each block that holds a pair."""
    number = len(vectors)
    with tqdm(total=number * (number + 1) // 2, desc="compare", unit="pair", unit_scale=True, disable=None) as bar:
        for column in range(0, number, COLUMNS):
            right = np.ascontiguousarray(vectors[column : column + COLUMNS], dtype=np.float32)
            for row in range(0, min(column + len(right), number), ROWS):
                left = np.ascontiguousarray(vectors[row : row + ROWS], dtype=np.float32)
                yield row, column, left @ right.T
                bar.update(_pairs_in(row, len(left), column, len(right)))


def _pairs_in(row: int, rows: int, column: int, columns: int) -> int:
    """Return how many of the pairs of a block are on or above the diagonal."""
    return int(np.clip(column + columns - np.maximum(np.arange(row, row + rows), column), 0, columns).sum())
