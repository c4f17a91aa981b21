"""What the segments of a TF-IDF index need to know of each other: the frequencies of terms, and the norms of chunks.

    idf = 1 + ln((1 + chunks) / (1 + df)),    norm = sqrt(sum over terms of ((1 + ln tf) * idf)^2)

Both are counted over the chunks of all segments without the deleted ones. Squares are rounded to multiples of 2**-24,
so that sums of them are exact in any order, and chunks have the same norms to the bit however they are cut into
segments.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Self

import numpy as np

from ctxsim_hf.origin.tfidf_segment import TfidfSegment, damaged, map_array

NORMS = "norms.npy"
POSTINGS_PER_BLOCK = 1 << 20
_EXACT = 2.0**24


@dataclass(frozen=True, eq=False)
class TfidfWeights:
    """The weights of one version of an index."""

    num_chunks: int  # without deleted ones
    dfs: Sequence[np.ndarray]  # of each segment: (terms,) chunks of this segment that hold the term
    inverse_norms: np.ndarray  # (chunks of all segments,) 0 for a deleted chunk

    @classmethod
    def compute(cls, segments: Sequence[TfidfSegment], deleted: np.ndarray | None = None) -> Self:
        """Count terms and compute norms, in one pass through all postings.

        Args:
            segments (`Sequence[TfidfSegment]`): The segments in order.
            deleted (`np.ndarray`, *optional*): Chunks that do not count, numbered through all segments. None: all do.
        """
        starts = np.cumsum([0, *(segment.num_chunks for segment in segments)])
        live = np.ones(starts[-1], dtype=bool)
        live[deleted if deleted is not None else []] = False
        parts = [live[start:end] for start, end in pairwise(starts)]
        dfs = [count_live(segment, part) for segment, part in zip(segments, parts, strict=True)]
        totals = add_up([segment.keys for segment in segments], dfs)
        norms = []
        for segment, total, part in zip(segments, totals, parts, strict=True):
            squares = _squared_norms(segment, idf(int(live.sum()), total))
            norms.append(np.where(part, 1 / np.sqrt(np.where(squares > 0, squares, 1)), 0))
        return cls(int(live.sum()), dfs, np.concatenate(norms).astype(np.float32))

    def save(self, folder: Path, segments: Sequence[TfidfSegment]) -> None:
        """Write the norms into a folder, and counts where they are not those of the segment itself."""
        np.save(folder / NORMS, self.inverse_norms)
        for number, (segment, df) in enumerate(zip(segments, self.dfs, strict=True)):
            if df is not segment.df:
                np.save(folder / _df_name(number), df)

    @classmethod
    def open(cls, folder: Path, segments: Sequence[TfidfSegment], num_deleted: int) -> Self:
        """Memory-map what `save` wrote."""
        total = sum(segment.num_chunks for segment in segments)
        norms = map_array(folder / NORMS, np.float32)
        dfs = []
        for number, segment in enumerate(segments):
            path = folder / _df_name(number)
            dfs.append(map_array(path, np.int64) if path.exists() else segment.df)
            if dfs[-1].shape != segment.keys.shape:
                raise damaged(path, f"expected shape {segment.keys.shape}, found {dfs[-1].shape}")
        if norms.shape != (total,):
            raise damaged(folder / NORMS, f"expected shape {(total,)}, found {norms.shape}")
        return cls(total - num_deleted, dfs, norms)


def idf(num_chunks: int, df: np.ndarray) -> np.ndarray:
    """Return the weights of terms."""
    weights: np.ndarray = 1 + np.log((1 + num_chunks) / (1 + df))
    return weights


def add_up(keys: Sequence[np.ndarray], counts: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the counts of the terms of each segment in all segments; terms are given by sorted keys."""
    if len(keys) == 1:
        return [np.asarray(counts[0])]
    every = np.concatenate(keys)
    order = np.argsort(every, kind="stable")  # a merge, since each part is sorted
    every = every[order]
    firsts = np.flatnonzero(np.concatenate([[True], every[1:] != every[:-1]])) if len(every) else order
    totals = np.empty(len(every), np.int64)
    if len(every):
        sums = np.add.reduceat(np.concatenate(counts)[order], firsts)
        totals[order] = np.repeat(sums, np.diff(firsts, append=len(every)))
    return np.split(totals, np.cumsum([len(part) for part in keys])[:-1])


def count_live(segment: TfidfSegment, live: np.ndarray) -> np.ndarray:
    """Return in how many of the chunks that count each term stands."""
    if live.all():
        return segment.df
    before = np.concatenate([[0], np.cumsum(live[segment.chunks])])
    return np.diff(before[segment.starts])


def _squared_norms(segment: TfidfSegment, idf: np.ndarray) -> np.ndarray:
    sums = np.zeros(segment.num_chunks)
    edges = np.searchsorted(segment.starts, np.arange(0, len(segment.chunks), POSTINGS_PER_BLOCK))
    for first, last in pairwise([*edges.tolist(), len(idf)]):
        block = slice(int(segment.starts[first]), int(segment.starts[last]))
        weights = segment.weights[block] * np.repeat(idf[first:last], segment.df[first:last])
        sums += np.bincount(segment.chunks[block], np.rint(weights**2 * _EXACT), len(sums))
    return sums / _EXACT


def _df_name(number: int) -> str:
    return f"df-{number:06d}.npy"
