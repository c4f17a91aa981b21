"""Find the chunks nearest to a sentence with a TF-IDF index on disk, by the cosine of weighted bags of n-grams.

The search is exact: every term of every chunk counts. A term weighs (1 + ln tf) * idf in a chunk or sentence that
holds it tf times, where idf = 1 + ln((1 + chunks) / (1 + df)), and vectors have length 1, as with
TfidfVectorizer(sublinear_tf=True) of scikit-learn. What a term adds to the scores is kept as postings if it is rare
(the chunks that hold it and its weight in each) and as a row if it is frequent (its weight in every chunk), since
adding a whole row is ten times as fast, per chunk, as adding to scattered places. Ruling chunks out before the rows
are added does not pay: a stop word weighs little, but many of them weigh more than one rare word.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from ctxsim_hf.origin.tfidf_build import ABOUT_FILE, ARRAYS, FORMAT, build_index, run_lengths
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.word_ngrams import NgramKeys

SENTENCES_PER_SHARE = 32
SAMPLED_EVERY = 64

Vector = tuple[np.ndarray, np.ndarray, float]  # places of terms in `keys`, 1 + ln tf of each, and the vector's norm
Found = tuple[np.ndarray, np.ndarray]  # numbers of chunks (int32), and their scores (float32)


@dataclass(frozen=True, eq=False)
class TfidfIndex:
    """An index on disk, memory-mapped. Chunks are numbered in the order in which they were given to `build`."""

    num_chunks: int
    ngrams: str
    keys: np.ndarray  # (terms,) sorted
    idf: np.ndarray  # (terms,)
    starts: np.ndarray  # (terms + 1,) into the postings; a term that has a row has no postings
    chunks: np.ndarray  # (postings,) chunks that hold the term, ascending
    weights: np.ndarray  # (postings,) weight in the chunk times idf: what a sentence that holds the term once finds
    row_terms: np.ndarray  # (rows,) places in keys, ascending
    rows: np.ndarray  # (rows, chunks) as weights

    @classmethod
    def build(
        cls, chunks: Iterable[Sequence[str]], folder: str | Path, ngrams: str = "uni+bigrams", **sizes: Any
    ) -> Self:
        """Write the index of chunks (each a list of sentences) into a new folder; see `build_index`."""
        build_index(chunks, Path(folder), ngrams, **sizes)
        return cls.open(folder)

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Memory-map the files of an index; refuse what `build` did not write."""
        num_chunks, ngrams = _read_about(Path(folder))
        arrays = {name: _map_array(Path(folder) / f"{name}.npy", dtype) for name, dtype in ARRAYS.items()}
        index = cls(num_chunks, ngrams, **arrays)
        terms, postings = len(index.keys), int(index.starts[-1]) if len(index.starts) else -1
        lengths = {"idf": terms, "starts": terms + 1, "chunks": postings, "weights": postings}
        shapes = [(name, (length,)) for name, length in lengths.items()]
        for name, shape in [*shapes, ("rows", (len(index.row_terms), num_chunks))]:
            if arrays[name].shape != shape:
                raise _damaged(Path(folder) / f"{name}.npy", f"expected shape {shape}, found {arrays[name].shape}")
        return index

    def search(self, sentences: Sequence[str], k: int, threads: int = 1) -> Iterator[Found]:
        """Yield for each sentence the k chunks of the highest score that share a term with it, best first.

        Among equal scores the lower number comes first. The result is the same for any number of threads.
        """
        if k < 1 or threads < 1:
            raise UserError(f"k and threads must be at least 1, got {k} and {threads}")
        keys_of = NgramKeys(self.ngrams)
        with ThreadPoolExecutor(threads) as pool:
            in_turn: Callable[..., Iterable[list[Found]]] = pool.map if threads > 1 else map
            for start in range(0, len(sentences), SENTENCES_PER_SHARE * threads):
                vectors = self._vectors(sentences[start : start + SENTENCES_PER_SHARE * threads], keys_of)
                shares = [vectors[i : i + SENTENCES_PER_SHARE] for i in range(0, len(vectors), SENTENCES_PER_SHARE)]
                for found in in_turn(lambda share: self._search(share, k), shares):
                    yield from found

    def _vectors(self, sentences: Sequence[str], keys_of: NgramKeys) -> list[Vector]:
        """Return the known terms of each sentence in the order of their keys."""
        keys, sentence_of = keys_of(sentences)
        order = np.lexsort((keys, sentence_of))
        keys, sentence_of, counts = run_lengths(keys[order], sentence_of[order])
        terms = np.searchsorted(self.keys, keys)
        known = terms < len(self.keys)
        known[known] = self.keys[terms[known]] == keys[known]
        terms, sentence_of, counts = terms[known], sentence_of[known], counts[known]
        factors = 1 + np.log(counts)
        norms = np.sqrt(np.bincount(sentence_of, (factors * self.idf[terms]) ** 2, len(sentences)))
        ends = np.searchsorted(sentence_of, np.arange(1, len(sentences)))
        parts = (np.split(terms, ends), np.split(factors.astype(np.float32), ends))
        return list(zip(*parts, norms.tolist(), strict=True))

    def _search(self, vectors: Sequence[Vector], k: int) -> list[Found]:
        scores = np.empty(self.num_chunks, np.float32)
        found = []
        for terms, factors, norm in vectors:
            scores.fill(0)
            starts, ends = self.starts[terms], self.starts[terms + 1]
            has_row = starts == ends
            rows = np.searchsorted(self.row_terms, terms[has_row])
            for row, factor in zip(rows, factors[has_row], strict=True):
                np.add(scores, _times(self.rows[row], factor), out=scores)
            for start, end, factor in zip(starts.tolist(), ends.tolist(), factors, strict=True):
                np.add.at(scores, self.chunks[start:end], _times(self.weights[start:end], factor))
            found.append(_best(scores, k, norm))
        return found


def _times(weights: np.ndarray, factor: np.float32) -> np.ndarray:
    return weights if factor == 1 else weights * factor  # few words occur twice in a sentence


def _best(scores: np.ndarray, k: int, norm: float) -> Found:
    """Return the k highest positive scores, divided by the norm.

    A sample gives a score that somewhat more than k chunks reach, so that few are sorted; if fewer reach it, all are.
    """
    sample = scores[::SAMPLED_EVERY]
    share = k / SAMPLED_EVERY
    rank = min(len(sample), int(share + 4 * share**0.5) + 4)  # with a margin of four standard deviations
    cut = np.partition(sample, -rank)[-rank] * np.float32(1 - 1e-6)  # division can make neighbours equal
    found = np.flatnonzero(scores >= cut if cut > 0 else scores)
    if len(found) < k:
        found = np.flatnonzero(scores)
    # Positive floats have the order of their bits, so one sort of integers gives highest score, then lowest number.
    bits = (scores[found] / np.float32(norm)).view(np.uint32)
    packed = np.sort((~bits).astype(np.uint64) << np.uint64(32) | found.astype(np.uint64))[:k]
    return packed.astype(np.uint32).astype(np.int32), (~(packed >> np.uint64(32)).astype(np.uint32)).view(np.float32)


def _read_about(folder: Path) -> tuple[int, str]:
    path = folder / ABOUT_FILE
    if not path.exists():
        raise UserError(f"expected a TF-IDF index, but {str(folder)!r} has no {ABOUT_FILE}; build the index again")
    try:
        about = json.loads(path.read_text("utf-8"))
        found, num_chunks, ngrams = about["format"], about["num_chunks"], about["ngrams"]
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(path, f"{error}") from None
    if found != FORMAT:
        raise UserError(f"{str(folder)!r} is an index of format {found!r}, expected {FORMAT}; build the index again")
    return num_chunks, ngrams


def _map_array(path: Path, dtype: type[np.generic]) -> np.ndarray:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False).view(np.ndarray)
    except (OSError, ValueError, EOFError) as error:
        raise _damaged(path, f"{error}") from None
    if array.dtype != dtype:
        raise _damaged(path, f"expected {np.dtype(dtype)}, found {array.dtype}")
    return array


def _damaged(path: Path, what: str) -> UserError:
    return UserError(f"{str(path)!r} is damaged or missing ({what}); build the index again")
