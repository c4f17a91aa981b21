"""Find documents by their words with BM25, over segments on disk that hold term frequencies."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ctxsim_hf.origin.tfidf_segment import TfidfSegment
from ctxsim_hf.origin.tfidf_weights import count_live
from ctxsim_hf.text.bm25_weights import bm25_idf, saturated
from ctxsim_hf.text.word_ngrams import NgramKeys

WORDS = "words"  # the terms of these segments


@dataclass(frozen=True, eq=False)
class WordSearch:
    """BM25 over documents, numbered through all segments."""

    segments: Sequence[TfidfSegment]
    live: np.ndarray  # (documents,) whether each counts

    @cached_property
    def _starts(self) -> np.ndarray:
        return np.cumsum([0, *(segment.num_chunks for segment in self.segments)])

    @cached_property
    def _dfs(self) -> list[np.ndarray]:
        edges = self._starts
        return [count_live(s, self.live[edges[n] : edges[n + 1]]) for n, s in enumerate(self.segments)]

    @cached_property
    def _lengths(self) -> np.ndarray:
        """The number of words of each document."""
        parts = [np.bincount(s.chunks, frequencies(s.weights), s.num_chunks) for s in self.segments]
        return np.concatenate(parts) if parts else np.zeros(0)

    @cached_property
    def _mean_length(self) -> float:
        return float(self._lengths[self.live].mean()) or 1.0

    def scores(self, query: str) -> np.ndarray:
        """Return the score of every document, 0 for deleted ones: (documents,)."""
        keys, counts = np.unique(NgramKeys(WORDS)([query])[0], return_counts=True)
        found = np.zeros(len(self.live))
        places = [segment.places(keys) for segment in self.segments]
        df = sum(np.where(place < 0, 0, dfs[place]) for place, dfs in zip(places, self._dfs, strict=True) if len(dfs))
        idf = counts * bm25_idf(int(self.live.sum()), np.zeros(len(keys)) + df)
        for segment, start, place in zip(self.segments, self._starts[:-1].tolist(), places, strict=True):
            for term in np.flatnonzero(place >= 0).tolist():
                postings = slice(segment.starts[place[term]], segment.starts[place[term] + 1])
                documents = start + segment.chunks[postings]
                tf = frequencies(segment.weights[postings])
                found[documents] += idf[term] * saturated(tf, self._lengths[documents], self._mean_length)
        return np.where(self.live, found, 0)


def frequencies(weights: np.ndarray) -> np.ndarray:
    """Return tf of the weights 1 + ln tf that segments hold."""
    return np.rint(np.exp(weights.astype(np.float64) - 1))
