"""A system, queries and documents -> the documents of each query, the most alike first.

A system with vectors encodes every text once, and a matrix product compares them. BM25 scores documents for a query as
search engines do. A system that knows only pairs is asked for the first 100 documents of BM25.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ctxsim_hf.evaluation.bm25 import K1, B, Bm25, bm25_vectors
from ctxsim_hf.evaluation.examples import Similarity
from ctxsim_hf.evaluation.fusion import ReciprocalRankFusion
from ctxsim_hf.evaluation.limited_encoder import LimitedEncoder
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.rank_fusion import RRF_K

RERANKED = 100
_BM25_WORDS = "words in lower case, neither stemmed nor stopped, counted in these documents"
_SCORES_AT_ONCE = 10_000_000  # queries x documents in memory


def top_documents(system: Similarity, queries: Sequence[str], documents: Sequence[str], number: int) -> np.ndarray:
    """Return the places of the first documents of each query, (queries, at most `number`); ties keep their order."""
    return np.concatenate([_first(scores, number) for scores in _score_blocks(system, queries, documents)])


def describe_ranking(system: Similarity, documents: Sequence[str]) -> str:
    """Return what a reader must know of how a system ranks; empty for nothing."""
    if isinstance(system, ReciprocalRankFusion):
        parts = [told for member in system.members if (told := describe_ranking(member, documents))]
        return "; ".join([f"sum of 1 / ({RRF_K} + rank)", *parts])
    if isinstance(system, Bm25):
        return f"BM25 with k1 {K1}, b {B}; {_BM25_WORDS}"
    if isinstance(system, LimitedEncoder):
        cut = f"{system.count_cut(documents):,} of {len(documents):,} documents"
        return f"reads {system.max_tokens} tokens of a text; {cut} are longer, and cut"
    if not hasattr(system, "vectors"):
        return f"has no vectors, so it ranks only the first {RERANKED} documents of BM25 ({_BM25_WORDS})"
    return ""


def _score_blocks(system: Any, queries: Sequence[str], documents: Sequence[str]) -> Iterator[np.ndarray]:
    """Yield (some queries, documents), in order; -inf for a document that is not ranked."""
    if isinstance(system, ReciprocalRankFusion):
        blocks = [_score_blocks(member, queries, documents) for member in system.members]
        yield from map(system.fuse, zip(*blocks, strict=True))
        return
    if not isinstance(system, Bm25) and not hasattr(system, "vectors"):
        yield from _reranked_blocks(system, queries, documents)
        return
    if isinstance(system, Bm25):
        asked, held = bm25_vectors(queries, documents)
    else:
        vectors = system.vectors([*queries, *documents])
        asked, held = vectors[: len(queries)], vectors[len(queries) :]
    for block in _query_blocks(len(queries), len(documents)):
        scores = asked[block] @ held.T
        scores = scores.toarray() if issparse(scores) else scores
        if np.isnan(scores).any():
            raise UserError("expected finite scores, but the system gave nan")
        yield scores


def _reranked_blocks(system: Similarity, queries: Sequence[str], documents: Sequence[str]) -> Iterator[np.ndarray]:
    asked, held = bm25_vectors(queries, documents)
    blocks = _query_blocks(len(queries), len(documents))
    first = np.concatenate([_first((asked[block] @ held.T).toarray(), RERANKED) for block in blocks])
    pairs = [(queries[query], documents[place]) for query, row in enumerate(first) for place in row]
    given = np.asarray(system.similarity(*map(list, zip(*pairs, strict=True))), dtype=np.float64)
    if given.shape != (first.size,) or not np.isfinite(given).all():
        raise UserError(f"expected a finite score for each of {first.size} pairs, got an array {given.shape}")
    given = given.reshape(first.shape)
    for block in blocks:
        scores = np.full((len(first[block]), len(documents)), -np.inf)
        np.put_along_axis(scores, first[block], given[block], axis=1)
        yield scores


def _query_blocks(num_queries: int, num_documents: int) -> list[slice]:
    rows = max(1, _SCORES_AT_ONCE // num_documents)
    return [slice(start, start + rows) for start in range(0, num_queries, rows)]


def _first(scores: np.ndarray, number: int) -> np.ndarray:
    return np.argsort(-scores, axis=1, kind="stable")[:, :number]
