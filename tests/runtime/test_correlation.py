"""Correlations and their intervals: scipy's figures, resamples one by one, and coverage of a planted truth."""

import math
import warnings

import numpy as np
import pytest
import scipy.stats

from ctxsim_hf.runtime.correlation import Measure, correlate, pearson, spearman
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.estimates import LEVEL, NUM_RESAMPLES

SCIPY = {spearman: scipy.stats.spearmanr, pearson: scipy.stats.pearsonr}
both_measures = pytest.mark.parametrize("measure", SCIPY, ids=["spearman", "pearson"])


def correlated(num_pairs: int, correlation: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    gold, noise = generator.normal(size=(2, num_pairs))
    return correlation * gold + math.sqrt(1 - correlation**2) * noise, gold


def test_by_hand() -> None:
    # Ranks 1 2 3 4 and 1 2.5 2.5 4: the deviations' products sum to 4.5, their squares to 5 and 4.5.
    estimate = correlate(spearman, np.array([0.1, 0.2, 0.3, 9.0]), np.array([0, 1, 1, 5]))
    assert estimate.value == pytest.approx(4.5 / math.sqrt(5 * 4.5))
    assert estimate.undefined is None
    assert correlate(pearson, np.array([1, 2, 3]), np.array([2, 4, 7])).value == pytest.approx(
        5 / math.sqrt(2 * 38 / 3)
    )


@both_measures
def test_the_value_is_scipys(measure: Measure) -> None:
    for seed in range(20):
        scores, gold = correlated(50, 0.6, seed)
        gold = gold.round()  # ties
        assert correlate(measure, scores, gold).value == pytest.approx(SCIPY[measure](scores, gold).statistic)


@both_measures
def test_the_interval_is_that_of_resamples_one_by_one(measure: Measure) -> None:
    scores, gold = correlated(40, 0.5, 0)
    gold = gold.round()
    draws = np.random.default_rng(7).integers(40, size=(NUM_RESAMPLES, 40))
    figures = [SCIPY[measure](scores[draw], gold[draw]).statistic for draw in draws]
    estimate = correlate(measure, scores, gold, seed=7)
    assert (estimate.low, estimate.high) == pytest.approx(np.quantile(figures, [0.025, 0.975]))


def test_equal_seeds_equal_intervals() -> None:
    scores, gold = correlated(100, 0.5, 0)
    lows = [correlate(spearman, scores, gold, seed).low for seed in (1, 1, 2)]
    assert lows[0] == lows[1] != lows[2]


@pytest.mark.parametrize("values", [[-3, 10**12, -3, 7], [0.5, 0.5, 0.1, 2.0]], ids=["large", "fractions"])
def test_ranks_of_any_numbers(values: list[float]) -> None:
    gold = np.array([4.0, 1.0, 2.0, 2.0])
    expected = scipy.stats.spearmanr(values, gold).statistic
    assert spearman(np.array(values)[None], gold[None])[0] == pytest.approx(expected)


def test_many_pairs_are_resampled_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxsim_hf.runtime.estimates._NUMBERS_AT_ONCE", 7000)
    scores, gold = correlated(1000, 0.5, 0)
    estimate = correlate(pearson, scores, gold)
    deviation = (1 - estimate.value**2) / math.sqrt(1000)  # of large samples
    assert estimate.high - estimate.low == pytest.approx(2 * 1.96 * deviation, rel=0.15)


@pytest.mark.parametrize(
    ("measure", "truth"), [(spearman, 6 / math.pi * math.asin(0.7 / 2)), (pearson, 0.7)], ids=["spearman", "pearson"]
)
def test_intervals_cover_the_planted_correlation(measure: Measure, truth: float) -> None:
    estimates = [correlate(measure, *correlated(80, 0.7, seed)) for seed in range(200)]
    covered = np.mean([estimate.low <= truth <= estimate.high for estimate in estimates])
    assert abs(covered - LEVEL) < 0.05  # three deviations of a share of 200


@both_measures
@pytest.mark.parametrize(
    ("scores", "gold", "reason"),
    [
        ([0.1] * 10, range(10), "all 10 scores of the system are 0.1"),
        (range(10), [3] * 10, "all 10 scores of people are 3"),
        ([1], [2], "a correlation needs two pairs or more, not 1"),
        ([], [], "a correlation needs two pairs or more, not 0"),
    ],
    ids=["system", "people", "one pair", "no pair"],
)
def test_no_correlation_has_a_reason(measure: Measure, scores: list[float], gold: list[float], reason: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate = correlate(measure, np.array(scores), np.array(gold))
    assert np.isnan([estimate.value, estimate.low, estimate.high]).all()
    assert estimate.undefined == reason


def test_few_pairs_give_no_warnings() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate = correlate(spearman, np.array([1, 2, 2]), np.array([1, 2, 3]))
    assert -1 <= estimate.low <= estimate.value <= estimate.high <= 1


def test_scores_that_are_no_numbers() -> None:
    gold = np.arange(5)
    with pytest.raises(UserError, match="2 of 5 are nan or infinite, the first at pair 1: inf"):
        correlate(spearman, np.array([0, np.inf, 0, np.nan, 1]), gold)
    with pytest.raises(UserError, match=r"each of 5 pairs, but the system gave an array \(5, 1\)"):
        correlate(spearman, np.zeros((5, 1)), gold)
