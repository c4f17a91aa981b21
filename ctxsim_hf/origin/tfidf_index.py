"""Find the chunks nearest to a sentence with a TF-IDF index on disk, by the cosine of weighted bags of n-grams.

The search is exact: every term of every chunk counts. A term weighs (1 + ln tf) * idf in a chunk or sentence that
holds it tf times, where idf = 1 + ln((1 + chunks) / (1 + df)), and vectors have length 1, as with
TfidfVectorizer(sublinear_tf=True) of scikit-learn. An index consists of segments, which hold 1 + ln tf alone; idf and
norms are applied to the sums, so that chunks can be added as another segment and deleted by a norm.

Every term has postings (the chunks that hold it and its weight in each). A frequent one has a row too (its weight in
every chunk), since adding whole rows is ten times as fast, per chunk, as adding to scattered places. Frequent terms
are added first and then the others, each in the order of their keys and rounded alike from rows and from postings:
so a score is the same to the bit however the chunks are cut into segments.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from ctxsim_hf.origin.tfidf_build import build_segment, run_lengths
from ctxsim_hf.origin.tfidf_segment import TfidfSegment
from ctxsim_hf.origin.tfidf_weights import TfidfWeights, idf
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.word_ngrams import NgramKeys

SENTENCES_PER_SHARE = 32
SAMPLED_EVERY = 64
FREQUENT_SHARE = 1 / 8  # of all chunks; terms in so many are added as rows
MAX_SCORES = 1 << 21  # of a share of sentences, in memory
CHUNKS_PER_BLOCK = 1 << 14  # whose rows are added up in the cache of a core

Found = tuple[np.ndarray, np.ndarray]  # numbers of chunks (int32), and their scores (float32)


class Vectors(NamedTuple):
    """The known terms of sentences: sentence after sentence, frequent terms first, each kind in the order of keys."""

    sentence_of: np.ndarray  # (terms,)
    is_rare: np.ndarray  # (terms,)
    factors: np.ndarray  # (terms,) (1 + ln tf) * idf^2: what the weight in a chunk is multiplied by
    places: np.ndarray  # (segments, terms) in the keys of each segment, -1 for none
    norms: np.ndarray  # (sentences,)

    def part(self, start: int, end: int) -> "Vectors":
        """Return the sentences from `start` to `end`."""
        terms = slice(*np.searchsorted(self.sentence_of, (start, end)).tolist())
        places, norms = self.places[:, terms], self.norms[start:end]
        return Vectors(self.sentence_of[terms] - start, self.is_rare[terms], self.factors[terms], places, norms)


@dataclass(frozen=True, eq=False)
class TfidfIndex:
    """An index on disk, memory-mapped. Chunks are numbered through all segments, as if there were no deleted ones."""

    segments: Sequence[TfidfSegment]
    weights: TfidfWeights
    deleted: np.ndarray  # chunks, numbered through all segments, ascending

    @classmethod
    def build(
        cls, chunks: Iterable[Sequence[str]], folder: str | Path, ngrams: str = "uni+bigrams", **sizes: Any
    ) -> Self:
        """Write an index of one segment into a new folder; see `build_segment`."""
        build_segment(chunks, Path(folder), ngrams, **sizes)
        segments = [TfidfSegment.open(folder)]
        TfidfWeights.compute(segments).save(Path(folder), segments)
        return cls.open(folder)

    @classmethod
    def open(
        cls,
        weights: str | Path,
        segments: Sequence[str | Path] | None = None,
        deleted: np.ndarray | None = None,
    ) -> Self:
        """Memory-map an index.

        Args:
            weights (`str` or `Path`): The folder of its weights.
            segments (`Sequence`, *optional*): The folders of its segments. None if it is one, in the same folder.
            deleted (`np.ndarray`, *optional*): Chunks that were deleted before the weights were computed. None: none.
        """
        opened = [TfidfSegment.open(folder) for folder in ([weights] if segments is None else segments)]
        deleted = np.zeros(0, np.int64) if deleted is None else deleted
        return cls(opened, TfidfWeights.open(Path(weights), opened, len(deleted)), deleted)

    @property
    def ngrams(self) -> str:
        """What terms are."""
        return self.segments[0].ngrams

    @property
    def num_chunks(self) -> int:
        """The number of chunks."""
        return self.weights.num_chunks

    @cached_property
    def _starts(self) -> np.ndarray:
        return np.cumsum([0, *(segment.num_chunks for segment in self.segments)])

    def search(self, sentences: Sequence[str], k: int, threads: int = 1) -> Iterator[Found]:
        """Yield for each sentence the k chunks of the highest score that share a term with it, best first.

        Among equal scores the lower number comes first. The result is the same for any number of threads.
        """
        if k < 1 or threads < 1:
            raise UserError(f"k and threads must be at least 1, got {k} and {threads}")
        keys_of, size = NgramKeys(self.ngrams), max(1, min(SENTENCES_PER_SHARE, MAX_SCORES // int(self._starts[-1])))
        with ThreadPoolExecutor(threads) as pool:
            in_turn: Callable[..., Iterable[list[Found]]] = pool.map if threads > 1 else map
            for start in range(0, len(sentences), SENTENCES_PER_SHARE * threads):
                vectors = self._vectors(sentences[start : start + SENTENCES_PER_SHARE * threads], keys_of)
                shares = [vectors.part(i, i + size) for i in range(0, len(vectors.norms), size)]
                for found in in_turn(lambda share: self._search(share, k), shares):
                    yield from found

    def _vectors(self, sentences: Sequence[str], keys_of: NgramKeys) -> Vectors:
        keys, sentence_of = keys_of(sentences)
        order = np.lexsort((keys, sentence_of))
        keys, sentence_of, counts = run_lengths(keys[order], sentence_of[order])
        places, df = np.empty((len(self.segments), len(keys)), np.int64), np.zeros(len(keys), np.int64)
        known, known_of = np.unique(keys, return_inverse=True)  # looked up in order, since that is fast
        for number, (segment, dfs) in enumerate(zip(self.segments, self.weights.dfs, strict=True)):
            places[number] = segment.places(known)[known_of]
            if len(dfs):
                df += np.where(places[number] < 0, 0, dfs[places[number]])
        is_rare = df < FREQUENT_SHARE * self.weights.num_chunks
        order = np.lexsort((is_rare, sentence_of))  # keys stay in order
        order = order[df[order] > 0]
        sentence_of, factors = sentence_of[order], 1 + np.log(counts[order])
        idfs = idf(self.weights.num_chunks, df[order])
        norms = np.sqrt(np.bincount(sentence_of, (factors * idfs) ** 2, len(sentences)))
        return Vectors(sentence_of, is_rare[order], (factors * idfs**2).astype(np.float32), places[:, order], norms)

    def _search(self, vectors: Vectors, k: int) -> list[Found]:
        scores = np.zeros((len(vectors.norms), self._starts[-1]), np.float32)
        for number, segment in enumerate(self.segments):
            here = vectors.places[number] >= 0
            for add, terms in ((_add_frequent, here & ~vectors.is_rare), (_add_rare, here & vectors.is_rare)):
                if terms.any():
                    sentence_of, places = vectors.sentence_of[terms], vectors.places[number, terms]
                    first = int(self._starts[number])
                    add(scores, _HeldTerms(segment, first, sentence_of, places, vectors.factors[terms]))
        scores *= self.weights.inverse_norms
        found = [_best(row, k, norm) for row, norm in zip(scores, vectors.norms.tolist(), strict=True)]
        if len(self.deleted):
            found = [(chunks - np.searchsorted(self.deleted, chunks).astype(np.int32), best) for chunks, best in found]
        return found


class _HeldTerms(NamedTuple):
    """The terms of sentences that a segment holds."""

    segment: TfidfSegment
    first: int  # number of its first chunk
    sentence_of: np.ndarray  # (terms,)
    places: np.ndarray  # (terms,) in the keys of the segment
    factors: np.ndarray  # (terms,)


def _add_frequent(scores: np.ndarray, held: _HeldTerms) -> None:
    """Set the scores of a segment to what frequent terms add, block by block."""
    segment, factors, terms = held.segment, held.factors, held.places.tolist()
    sentences, starts = np.unique(held.sentence_of, return_index=True)
    for sentence, (start, end) in zip(sentences.tolist(), pairwise([*starts.tolist(), len(terms)]), strict=True):
        rows = [segment.row_of.get(term, -1) for term in terms[start:end]]
        weights = segment.rows
        if -1 in rows:  # one is frequent in other segments only
            rows, weights = list(range(end - start)), _dense(segment, terms[start:end])
        for place in range(0, segment.num_chunks, CHUNKS_PER_BLOCK):
            columns = slice(place, min(place + CHUNKS_PER_BLOCK, segment.num_chunks))
            block = weights[rows, columns]
            block *= factors[start:end, None]
            target = scores[sentence, held.first + place : held.first + columns.stop]
            if len(target) > 1:
                np.add.reduce(block, axis=0, out=target)  # row after row
            else:  # numpy would add a single column pairwise
                target[:] = np.add.accumulate(block, axis=0)[-1]


def _dense(segment: TfidfSegment, terms: Sequence[int]) -> np.ndarray:
    rows = np.zeros((len(terms), segment.num_chunks), np.float32)
    for row, term in zip(rows, terms, strict=True):
        postings = slice(segment.starts[term], segment.starts[term + 1])
        row[segment.chunks[postings]] = segment.weights[postings]
    return rows


def _add_rare(scores: np.ndarray, held: _HeldTerms) -> None:
    """Add to the scores of a segment what the postings of terms add, in their order."""
    segment = held.segment
    starts, ends = segment.starts[held.places], segment.starts[held.places + 1]
    slices = [slice(start, end) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    weights = np.concatenate([segment.weights[postings] for postings in slices])
    weights *= np.repeat(held.factors, ends - starts)
    chunks = np.concatenate([segment.chunks[postings] for postings in slices])
    if len(scores) > 1 or held.first:
        chunks = chunks + np.repeat(held.sentence_of * scores.shape[1] + held.first, ends - starts)
    np.add.at(scores.reshape(-1), chunks, weights)


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
