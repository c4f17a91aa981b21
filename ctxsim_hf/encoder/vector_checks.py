"""Vectors of a model that may be damaged -> the same, or one plain line."""

import numpy as np

from ctxsim_hf.runtime.errors import UserError


def check_vectors(vectors: np.ndarray) -> np.ndarray:
    """Return vectors; refuse any that has a NaN or an infinite number in it, with which nothing could be compared."""
    if not np.isfinite(vectors.sum(dtype=np.float64)):
        raise UserError("the model gives vectors that are no numbers, as its weights are damaged; use another copy")
    return vectors
