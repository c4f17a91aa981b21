"""Scores of a system and of people for the same pairs -> Spearman's and Pearson's correlation, with intervals.

An interval is a bootstrap's: the middle 95 % of the figures that pairs drawn with replacement give. The draws depend
on the seed and the number of pairs alone, so two systems meet the same ones: the interval of a difference is paired.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from ctxsim_hf.errors import UserError

NUM_RESAMPLES = 1000
LEVEL = 0.95
_NUMBERS_AT_ONCE = 1_000_000  # pairs x resamples in memory

# (rows, pairs) of a system and of people -> (rows,)
Measure = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Estimate:
    """A figure with its interval; all three are nan where `undefined` says why there is none."""

    value: float
    low: float
    high: float
    undefined: str | None = None


def pearson(scores: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """Pearson's correlation of each row; nan where either row is constant."""
    product = (_centred(scores) * _centred(gold)).sum(axis=-1)
    lengths = np.sqrt((_centred(scores) ** 2).sum(axis=-1) * (_centred(gold) ** 2).sum(axis=-1))
    # Not by a length of 0: rounding may leave something of a constant row minus its mean.
    constant = (np.ptp(scores, axis=-1) == 0) | (np.ptp(gold, axis=-1) == 0)
    return np.divide(product, lengths, out=np.full_like(product, np.nan), where=~constant)


def spearman(scores: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """Spearman's correlation of each row, ties sharing their mean rank; nan where either row is constant."""
    return pearson(rankdata(scores, axis=-1), rankdata(gold, axis=-1))


def correlate(measure: Measure, scores: np.ndarray, gold: np.ndarray, seed: int = 0) -> Estimate:
    """The correlation of a system's scores with those of people."""
    scores = check_scores(scores, len(gold))
    if reason := _why_undefined(scores, gold):
        return Estimate(np.nan, np.nan, np.nan, reason)
    return _estimate(_value(measure, scores, gold), _resampled(measure, scores, gold, seed))


def correlate_difference(
    measure: Measure, scores: np.ndarray, other_scores: np.ndarray, gold: np.ndarray, seed: int = 0
) -> Estimate:
    """How much higher a system correlates than another on the same pairs; an interval without 0 tells them apart."""
    scores, other_scores = check_scores(scores, len(gold)), check_scores(other_scores, len(gold))
    if reason := _why_undefined(scores, gold) or _why_undefined(other_scores, gold):
        return Estimate(np.nan, np.nan, np.nan, reason)
    value = _value(measure, scores, gold) - _value(measure, other_scores, gold)
    resampled = _resampled(measure, scores, gold, seed) - _resampled(measure, other_scores, gold, seed)
    return _estimate(value, resampled)


def check_scores(scores: np.ndarray, num_pairs: int) -> np.ndarray:
    """A system's scores as float64; refuses what is not one finite number a pair."""
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


def _why_undefined(scores: np.ndarray, gold: np.ndarray) -> str | None:
    if len(gold) < 2:
        return f"a correlation needs two pairs or more, not {len(gold)}"
    for whose, values in (("the system", scores), ("people", gold)):
        if np.ptp(values) == 0:
            return f"all {len(gold)} scores of {whose} are {values[0]:g}"
    return None


def _value(measure: Measure, scores: np.ndarray, gold: np.ndarray) -> float:
    return float(measure(scores[None], gold[None])[0])


def _resampled(measure: Measure, scores: np.ndarray, gold: np.ndarray, seed: int) -> np.ndarray:
    # Ranks are those of the drawn pairs, as they would be had these been the task.
    return np.concatenate([measure(scores[draw], gold[draw]) for draw in _draws(len(gold), seed)])


def _draws(num_pairs: int, seed: int) -> Iterator[np.ndarray]:
    """(resamples, pairs) of indices, in blocks that fit into memory."""
    generator = np.random.default_rng(seed)
    rows = max(1, _NUMBERS_AT_ONCE // num_pairs)
    for start in range(0, NUM_RESAMPLES, rows):
        yield generator.integers(num_pairs, size=(min(rows, NUM_RESAMPLES - start), num_pairs))


def _estimate(value: float, resampled: np.ndarray) -> Estimate:
    # With a handful of pairs a resample may hold one pair over and over: it has no correlation and is left out.
    tail = (1 - LEVEL) / 2
    low, high = np.nanquantile(resampled, [tail, 1 - tail])
    return Estimate(value, float(low), float(high))


def _centred(rows: np.ndarray) -> np.ndarray:
    return rows - rows.mean(axis=-1, keepdims=True)
