"""Correlate the scores of a system with human scores, by Spearman and Pearson, with intervals."""

from collections.abc import Callable

import numpy as np

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.estimates import Estimate, bootstrap, undefined

# (rows, pairs) of a system and of people -> (rows,)
Measure = Callable[[np.ndarray, np.ndarray], np.ndarray]
_CODE = np.uint32


def pearson(scores: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """Return Pearson's correlation of each row; nan where either row is constant."""
    first, second = (rows - rows.mean(axis=-1, keepdims=True) for rows in (scores, gold))
    product = np.einsum("ij,ij->i", first, second)
    lengths = np.sqrt(np.einsum("ij,ij->i", first, first) * np.einsum("ij,ij->i", second, second))
    # Lengths of 0 would not find it: a constant row minus its mean may not be exactly 0.
    constant = (np.ptp(scores, axis=-1) == 0) | (np.ptp(gold, axis=-1) == 0)
    return np.divide(product, lengths, out=np.full_like(product, np.nan), where=~constant)


def spearman(scores: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """Return Spearman's correlation of each row, with mean ranks for ties; nan where either row is constant."""
    return pearson(_ranks(scores), _ranks(gold))


def correlate(measure: Measure, scores: np.ndarray, gold: np.ndarray, seed: int = 0) -> Estimate:
    """Return the correlation of a system's scores with the human scores, with an interval."""
    scores = check_scores(scores, len(gold))
    if reason := _why_undefined(scores, gold):
        return undefined(reason)
    if measure is spearman:  # sort once, not in each of a thousand resamples
        scores, gold = _codes(scores), _codes(gold)
    # Ranks are taken among the drawn pairs, as if these were the task.
    return bootstrap(lambda draw: measure(scores[draw], gold[draw]), len(gold), seed)


def check_scores(scores: np.ndarray, num_pairs: int) -> np.ndarray:
    """Return a system's scores as float64; refuse anything but one finite number for each pair."""
    scores = np.asarray(scores, dtype=np.float64)
    if scores.shape != (num_pairs,):
        raise UserError(
            f"expected one score for each of {num_pairs} pairs, but the system gave an array {scores.shape}"
        )
    if (bad := np.flatnonzero(~np.isfinite(scores))).size:
        raise UserError(
            f"expected finite scores, but {bad.size} of {num_pairs} are nan or infinite, "
            f"the first at pair {bad[0]}: {scores[bad[0]]}"
        )
    return scores


def _ranks(rows: np.ndarray) -> np.ndarray:
    """Return the mean ranks of each row."""
    codes = rows if rows.dtype == _CODE else np.stack([_codes(row) for row in rows])
    shape = len(codes), int(codes.max(initial=0)) + 1
    places = codes + np.arange(shape[0])[:, None] * shape[1]  # in a table of counts, a row for each row
    counts = np.bincount(places.ravel(), minlength=shape[0] * shape[1]).reshape(shape)
    return (np.cumsum(counts, axis=1) - (counts - 1) / 2).ravel()[places]


def _codes(values: np.ndarray) -> np.ndarray:
    """Return the place of each value among the distinct ones, so that ranks come from counting, not from sorting."""
    return np.unique(values, return_inverse=True)[1].astype(_CODE)


def _why_undefined(scores: np.ndarray, gold: np.ndarray) -> str | None:
    if len(gold) < 2:
        return f"a correlation needs two pairs or more, not {len(gold)}"
    for whose, values in (("the system", scores), ("people", gold)):
        if np.ptp(values) == 0:
            return f"all {len(gold)} scores of {whose} are {values[0]:g}"
    return None
