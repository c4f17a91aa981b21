"""Estimates: intervals of means, of differences and of averages, against resamples one by one."""

import math

import numpy as np
import pytest

from ctxsim_hf.runtime.correlation import correlate, pearson, spearman
from ctxsim_hf.runtime.estimates import LEVEL, NUM_RESAMPLES, bootstrap, mean_estimate, undefined


def correlated(num_pairs: int, correlation: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    gold, noise = np.random.default_rng(seed).normal(size=(2, num_pairs))
    return correlation * gold + math.sqrt(1 - correlation**2) * noise, gold


def test_a_mean_by_hand() -> None:
    values = np.array([0.0, 1.0, 1.0, 0.5])
    estimate = bootstrap(lambda draw: values[draw].mean(axis=-1), 4, seed=3)
    means = [values[draw].mean() for draw in np.random.default_rng(3).integers(4, size=(NUM_RESAMPLES, 4))]
    assert estimate.value == 0.625
    assert (estimate.low, estimate.high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])))


def test_a_paired_difference_sees_what_two_intervals_do_not() -> None:
    scores, gold = correlated(300, 0.7, 0)
    worse = scores + np.random.default_rng(1).normal(scale=0.3, size=300)
    better, other = correlate(spearman, scores, gold), correlate(spearman, worse, gold)
    difference = better - other
    assert difference.value == better.value - other.value
    assert better.low < other.high and difference.low > 0
    assert (better - better).high == 0


def test_differences_of_equally_good_systems_cover_0() -> None:
    covered = []
    for seed in range(100):
        generator = np.random.default_rng(seed)
        gold = generator.normal(size=80)
        one, other = gold + generator.normal(size=(2, 80))
        difference = correlate(pearson, one, gold) - correlate(pearson, other, gold)
        covered.append(difference.low <= 0 <= difference.high)
    assert abs(np.mean(covered) - LEVEL) < 0.07


def test_an_average_of_tasks_is_surer_than_one_of_them() -> None:
    tasks = [correlate(pearson, *correlated(200, 0.6, seed)) for seed in range(4)]
    average = mean_estimate(tasks)
    assert average.value == pytest.approx(np.mean([task.value for task in tasks]))
    width = np.mean([task.high - task.low for task in tasks])
    assert average.high - average.low == pytest.approx(width / 2, rel=0.2)  # the root of four


def test_what_has_no_figure_makes_none() -> None:
    one = correlate(pearson, *correlated(10, 0.5, 0))
    for estimate in (one - undefined("no reason"), mean_estimate([one, undefined("no reason")])):
        assert estimate.undefined == "no reason" and math.isnan(estimate.value) and math.isnan(estimate.low)
