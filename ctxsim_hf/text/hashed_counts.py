"""Counts of terms, kept as eight bytes of hash for each, so that a vocabulary of any size can be searched on disk."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Self

import numpy as np
import xxhash

from ctxsim_hf.runtime.files import writing


class HashedCounts:
    """
    Args:
        keys (`np.ndarray`): Sorted hashes of the terms.
        counts (`np.ndarray`): The count of each.
    """

    def __init__(self, keys: np.ndarray, counts: np.ndarray) -> None:
        self.keys, self.counts = keys, counts

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> Self:
        keys = _hash(counts)
        order = np.argsort(keys)
        return cls(keys[order], np.fromiter(counts.values(), np.int64, len(counts))[order])

    def __len__(self) -> int:
        return len(self.keys)

    def __call__(self, terms: Iterable[str]) -> np.ndarray:
        """Return the count of each term, 0 if it was not counted."""
        keys = _hash(terms)
        places = np.searchsorted(self.keys, keys)
        seen = places < len(self.keys)
        seen[seen] = self.keys[places[seen]] == keys[seen]
        found = np.zeros(len(keys), np.int64)
        found[seen] = self.counts[places[seen]]
        return found

    def __add__(self, other: "HashedCounts") -> "HashedCounts":
        return _sum(self.keys, other.keys, self.counts, other.counts)

    def __sub__(self, other: "HashedCounts") -> "HashedCounts":
        return _sum(self.keys, other.keys, self.counts, -other.counts)

    def save(self, folder: Path, name: str) -> None:
        """Write two files into a folder."""
        for path, array in zip(_paths(folder, name), (self.keys, self.counts), strict=True):
            with writing(path) as temporary, temporary.open("wb") as file:
                np.save(file, array, allow_pickle=False)

    @classmethod
    def load(cls, folder: Path, name: str) -> Self:
        """Open the files that `save` wrote; the arrays stay on disk."""
        keys, counts = (np.load(path, mmap_mode="r", allow_pickle=False) for path in _paths(folder, name))
        if len(keys) != len(counts):
            raise ValueError(f"there are {len(keys)} {name} and {len(counts)} counts of them")
        return cls(keys, counts)


def _sum(keys1: np.ndarray, keys2: np.ndarray, counts1: np.ndarray, counts2: np.ndarray) -> HashedCounts:
    """Add up the counts of terms; a term whose count becomes 0 is left out."""
    keys = np.concatenate([keys1, keys2])
    order = np.argsort(keys, kind="stable")  # a merge, since both are sorted
    keys, firsts = np.unique(keys[order], return_index=True)
    counts = np.concatenate([counts1, counts2])[order]
    counts = np.add.reduceat(counts, firsts) if len(firsts) else counts
    return HashedCounts(keys[counts != 0], counts[counts != 0])


def _paths(folder: Path, name: str) -> tuple[Path, Path]:
    return folder / f"{name}_keys.npy", folder / f"{name}_counts.npy"


def _hash(terms: Iterable[str]) -> np.ndarray:
    return np.array([xxhash.xxh3_64_intdigest(term.encode()) for term in terms], dtype=np.uint64)
