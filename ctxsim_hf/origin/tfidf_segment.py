"""Open a segment of a TF-IDF index, memory-mapped, and find terms in it."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np

from ctxsim_hf.origin.tfidf_build import ABOUT_FILE, ARRAYS, FORMAT, Postings
from ctxsim_hf.runtime.errors import UserError


@dataclass(frozen=True, eq=False)
class TfidfSegment:
    """The terms of some chunks, which are numbered from 0 in each segment."""

    num_chunks: int
    ngrams: str
    keys: np.ndarray  # (terms,) sorted
    starts: np.ndarray  # (terms + 1,) into the postings
    chunks: np.ndarray  # (postings,) chunks that hold the term, ascending
    weights: np.ndarray  # (postings,) 1 + ln tf
    row_terms: np.ndarray  # (rows,) places in keys of frequent terms, ascending
    rows: np.ndarray  # (rows, chunks) their weights in every chunk

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Memory-map the files of a segment; refuse what `build_segment` did not write."""
        num_chunks, ngrams = _read_about(Path(folder))
        arrays = {name: map_array(Path(folder) / f"{name}.npy", dtype) for name, dtype in ARRAYS.items()}
        segment = cls(num_chunks, ngrams, **arrays)
        terms, postings = len(segment.keys), int(segment.starts[-1]) if len(segment.starts) else -1
        lengths = {"starts": terms + 1, "chunks": postings, "weights": postings}
        shapes = [(name, (length,)) for name, length in lengths.items()]
        for name, shape in [*shapes, ("rows", (len(segment.row_terms), num_chunks))]:
            if arrays[name].shape != shape:
                raise damaged(Path(folder) / f"{name}.npy", f"expected shape {shape}, found {arrays[name].shape}")
        return segment

    @cached_property
    def df(self) -> np.ndarray:
        """The number of chunks that hold each term: (terms,)."""
        return np.diff(self.starts)

    def places(self, keys: np.ndarray) -> np.ndarray:
        """Return the place of each term in `keys`, -1 for one that no chunk holds."""
        if not len(self.keys):
            return np.full(len(keys), -1)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[places] == keys, places, -1)

    def postings(self, first: int, last: int) -> Postings:
        """Return the postings of the terms from `first` to `last`."""
        held = slice(int(self.starts[first]), int(self.starts[last]))
        return Postings(np.repeat(self.keys[first:last], self.df[first:last]), self.chunks[held], self.weights[held])

    @cached_property
    def row_of(self) -> dict[int, int]:
        """The row of each term that has one."""
        return {term: row for row, term in enumerate(self.row_terms.tolist())}


def map_array(path: Path, dtype: type[np.generic] | None = None) -> np.ndarray:
    """Memory-map an array; refuse one that is damaged or of another type. None allows any type."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False).view(np.ndarray)
    except (OSError, ValueError, EOFError) as error:
        raise damaged(path, f"{error}") from None
    if dtype is not None and array.dtype != dtype:
        raise damaged(path, f"expected {np.dtype(dtype)}, found {array.dtype}")
    return array


def damaged(path: Path, what: str) -> UserError:
    """Return the error for a file that cannot be used."""
    return UserError(f"{str(path)!r} is damaged or missing ({what}); build the index again")


def _read_about(folder: Path) -> tuple[int, str]:
    path = folder / ABOUT_FILE
    if not path.exists():
        raise UserError(f"expected a TF-IDF index, but {str(folder)!r} has no {ABOUT_FILE}; build the index again")
    try:
        about = json.loads(path.read_text("utf-8"))
        found, num_chunks, ngrams = about["format"], about["num_chunks"], about["ngrams"]
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(path, f"{error}") from None
    if found != FORMAT:
        raise UserError(f"{str(folder)!r} is an index of format {found!r}, expected {FORMAT}; build the index again")
    return num_chunks, ngrams
