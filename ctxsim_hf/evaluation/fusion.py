"""Reciprocal rank fusion (Cormack et al., 2009): several systems rank documents, and their ranks are added up."""

from collections.abc import Sequence

import numpy as np

from ctxsim_hf.evaluation.examples import Similarity
from ctxsim_hf.runtime.errors import UserError

RRF_K = 60  # of the paper


class ReciprocalRankFusion:
    """
    Args:
        members: The systems, each with the same say.
    """

    def __init__(self, members: Sequence[Similarity]) -> None:
        self.members = members

    def similarity(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> np.ndarray:
        raise UserError("rrf fuses rankings of documents, so it is judged by --retrieval only, not by pairs")

    def fuse(self, scores: Sequence[np.ndarray]) -> np.ndarray:
        """Return the sum of 1 / (60 + rank) over systems, from the scores of each: (queries, documents)."""
        return np.sum([_reciprocal_ranks(one) for one in scores], axis=0)


def _reciprocal_ranks(scores: np.ndarray) -> np.ndarray:
    order = np.argsort(-scores, axis=1, kind="stable")
    ranks = np.empty(scores.shape)
    np.put_along_axis(ranks, order, np.arange(1.0, scores.shape[1] + 1)[None], axis=1)
    return np.where(np.isneginf(scores), 0, 1 / (RRF_K + ranks))  # -inf: not ranked
