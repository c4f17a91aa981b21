"""Scores of several systems -> ranks that can be added up: reciprocal rank fusion (Cormack et al., 2009)."""

import numpy as np

RRF_K = 60  # of the paper


def reciprocal_ranks(scores: np.ndarray) -> np.ndarray:
    """Return 1 / (60 + rank) of every document for every query, 0 where a score is -inf: (queries, documents)."""
    order = np.argsort(-scores, axis=1, kind="stable")
    ranks = np.empty(scores.shape)
    np.put_along_axis(ranks, order, np.arange(1.0, scores.shape[1] + 1)[None], axis=1)
    return np.where(np.isneginf(scores), 0, 1 / (RRF_K + ranks))
