"""Reciprocal rank fusion (Cormack et al., 2009): several systems rank documents, and their ranks are added up."""

from collections.abc import Sequence

import numpy as np

from ctxsim_hf.evaluation.examples import Similarity
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.rank_fusion import reciprocal_ranks


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
        return np.sum([reciprocal_ranks(one) for one in scores], axis=0)
