"""Arrays of several segments, some of whose documents are deleted, seen as one array without the deleted ones.

A *run* is a stretch of a segment that holds no deleted document. Rows are numbered through all runs. A single segment
without deletions is left as it is, so that nothing is slower for it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ctxsim_hf.text.token_blocks import starts_of
from ctxsim_hf.text.tokenized import TokenizedChunks


@dataclass(frozen=True, eq=False)
class Runs:
    """Rows of some kind: chunks, sentences, tokens or contexts."""

    segments: np.ndarray  # (runs,) the segment of each
    starts: np.ndarray  # (runs,) its first row in that segment
    ends: np.ndarray  # (runs,) the row after its last

    @cached_property
    def firsts(self) -> np.ndarray:
        """The number of each run's first row among all rows, and the number of rows: (runs + 1,)."""
        return starts_of(self.ends - self.starts)

    @cached_property
    def shifts(self) -> np.ndarray:
        """What turns a number among all rows into the row in its segment: (runs,)."""
        return self.starts - self.firsts[:-1]

    def slices(self) -> list[tuple[int, slice]]:
        """Return the segment and the rows of each run."""
        ranges = zip(self.segments.tolist(), self.starts.tolist(), self.ends.tolist(), strict=True)
        return [(segment, slice(start, end)) for segment, start, end in ranges]


class JoinedArray:
    """Rows of the arrays of several segments. It is read by index arrays and slices, and all of it by `np.asarray`.

    Args:
        parts (`Sequence[np.ndarray]`): The array of each segment.
        runs (`Runs`): The rows that count.
        values (`Runs`, *optional*): Rows to which the values point, so that they are renumbered, and one value is
            added, which points to their end. None leaves values as they are.
    """

    def __init__(self, parts: Sequence[np.ndarray], runs: Runs, values: Runs | None = None) -> None:
        self.parts, self.runs, self.values = parts, runs, values
        self.dtype, self.ndim = parts[0].dtype, parts[0].ndim
        self.shape = (int(runs.firsts[-1]) + (values is not None), *parts[0].shape[1:])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            key = np.arange(*key.indices(len(self)))
        numbers = np.asarray(key)
        flat = np.where(numbers < 0, numbers + len(self), numbers).ravel()
        # The end of the last run is no row, but its values have one more.
        run = np.searchsorted(self.runs.firsts[:-1], flat, side="right") - 1
        rows, segments = flat + self.runs.shifts[run], self.runs.segments[run].astype(np.uint16)
        found = np.empty((len(flat), *self.shape[1:]), self.dtype)
        order = np.argsort(segments, kind="stable")  # a radix sort of so short numbers
        present, starts = np.unique(segments[order], return_index=True)
        for segment, places in zip(present.tolist(), np.split(order, starts)[1:], strict=True):
            found[places] = self.parts[segment][rows[places]]
        if self.values is not None:
            found -= self.values.shifts[run]
        return found.reshape(numbers.shape + self.shape[1:])[()]

    def pieces(self) -> Iterator[np.ndarray]:
        """Yield all rows, run after run."""
        for number, (segment, rows) in enumerate(self.runs.slices()):
            piece = self.parts[segment][rows]
            yield piece if self.values is None else piece - self.values.shifts[number]
        if self.values is not None:
            yield self.values.firsts[-1:]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.concatenate(list(self.pieces())).astype(dtype or self.dtype, copy=False)


@dataclass(frozen=True, eq=False)
class Joined:
    """How the chunks of several segments become one sequence."""

    segments: Sequence[TokenizedChunks]
    deleted: np.ndarray  # chunks, numbered through all segments, ascending

    @property
    def is_trivial(self) -> bool:
        """Whether there is a single segment and nothing deleted."""
        return len(self.segments) == 1 and not len(self.deleted)

    @cached_property
    def chunks(self) -> Runs:
        """The runs in chunks."""
        starts, ends, owners, before = [], [], [], 0
        for number, segment in enumerate(self.segments):
            end = before + segment.num_chunks
            deleted = self.deleted[slice(*np.searchsorted(self.deleted, (before, end)))] - before
            live = np.ones(segment.num_chunks + 2, dtype=bool)
            live[[0, *(deleted + 1), -1]] = False
            edges = np.flatnonzero(live[1:] != live[:-1])
            starts.append(edges[::2])
            ends.append(edges[1::2])
            owners.append(np.full(len(edges) // 2, number))
            before = end
        return Runs(*(np.concatenate(part).astype(np.int64) for part in (owners, starts, ends)))

    @cached_property
    def sentences(self) -> Runs:
        """The runs in sentences."""
        return self._down(self.chunks, "chunk_starts")

    @cached_property
    def tokens(self) -> Runs:
        """The runs in tokens."""
        return self._down(self.sentences, "sentence_starts")

    @cached_property
    def contexts(self) -> Runs:
        """The runs in contexts; a chunk has two fewer than sentences."""
        chunks, sentences = self.chunks, self.sentences
        return Runs(chunks.segments, sentences.starts - 2 * chunks.starts, sentences.ends - 2 * chunks.ends)

    def _down(self, runs: Runs, name: str) -> Runs:
        starts = [getattr(segment, name) for segment in self.segments]
        bounds = [
            [starts[segment][row] for segment, row in zip(runs.segments.tolist(), side.tolist(), strict=True)]
            for side in (runs.starts, runs.ends)
        ]
        return Runs(runs.segments, *(np.array(side, dtype=np.int64) for side in bounds))

    def tokenized(self) -> TokenizedChunks:
        """Return the chunks of all segments as one sequence."""
        if self.is_trivial:
            return self.segments[0]
        tokens = JoinedArray([segment.tokens for segment in self.segments], self.tokens)
        starts = JoinedArray([segment.sentence_starts for segment in self.segments], self.sentences, self.tokens)
        chunk_starts = JoinedArray([segment.chunk_starts for segment in self.segments], self.chunks, self.sentences)
        # The views behave like arrays wherever chunks are read, without holding what they show.
        return TokenizedChunks(tokens, starts, np.asarray(chunk_starts), self._document_starts())  # type: ignore[arg-type]

    def _document_starts(self) -> np.ndarray:
        parts = []
        runs = zip(self.sentences.slices(), self.sentences.shifts.tolist(), strict=True)
        for (segment, rows), shift in runs:
            starts = self.segments[segment].document_starts
            parts.append(starts[slice(*np.searchsorted(starts, (rows.start, rows.stop)))] - shift)
        return np.concatenate([*parts, self.sentences.firsts[-1:]])

    def join(self, parts: Sequence[np.ndarray], runs: Runs) -> Any:
        """Return rows of arrays, one of each segment, as one array."""
        return parts[0] if self.is_trivial else JoinedArray(parts, runs)
