"""Score vectors to one number: worked examples by hand, and whitening by two roads."""

import math

import numpy as np
import pytest

from ctxsim_hf.origin.comparison import (
    COMPARISONS,
    RESAMPLES,
    comparable,
    context_spread,
    cosine,
    cosines_and_spreads,
    whiten,
)
from ctxsim_hf.runtime.errors import UserError

SCORES = np.array([[-1.0, -3.0], [-2.0, -2.0]])
BACKGROUND = np.array([[-1.0, -6.0], [-3.0, -2.0]])  # means -2 and -4, deviations 1 and 2


def test_worked_examples() -> None:
    assert cosine(*comparable("cosine", SCORES, BACKGROUND)) == pytest.approx(8 / (math.sqrt(10) * math.sqrt(8)))
    np.testing.assert_allclose(comparable("centered", SCORES, BACKGROUND), [[1, 1], [0, 2]])
    assert cosine(*comparable("centered", SCORES, BACKGROUND)) == pytest.approx(2 / (math.sqrt(2) * 2))
    np.testing.assert_allclose(comparable("zscore", SCORES, BACKGROUND), [[1, 0.5], [0, 1]])
    # The background's two contexts are perfectly anticorrelated: R = [[1, -1], [-1, 1]], with eigenvalue 2 along
    # (1, -1) / sqrt 2 and 0 along (1, 1) / sqrt 2. With ridge 0.25 the first shrinks by 1.5, the second grows by 2.
    along, across = np.array([1, -1]) / math.sqrt(2), np.array([1, 1]) / math.sqrt(2)
    expected = [
        (vector @ along) / 1.5 * along + (vector @ across) * 2 * across for vector in np.array([[1, 0.5], [0, 1]])
    ]
    np.testing.assert_allclose(comparable("whitened", SCORES, BACKGROUND, ridge=0.25), expected)


@pytest.mark.parametrize("contexts", [5, 20, 60])
def test_whitening_on_either_side_is_the_same_root(contexts: int) -> None:
    """More contexts than background sentences, or fewer: always the inverse root of the correlation matrix."""
    rng = np.random.default_rng(0)
    background = rng.normal(size=(20, contexts)) @ rng.normal(size=(contexts, contexts))
    background = (background - background.mean(0)) / background.std(0)
    vectors = rng.normal(size=(3, contexts))
    correlation = background.T @ background / 20
    np.testing.assert_allclose(np.diag(correlation), 1)
    values, directions = np.linalg.eigh(correlation + 0.03 * np.eye(contexts))
    expected = vectors @ (directions * values**-0.5) @ directions.T
    np.testing.assert_allclose(whiten(vectors, background, 0.03), expected, atol=1e-8)


def test_whitening_undoes_repetition() -> None:
    """A context that is there ten times counts about once."""
    rng = np.random.default_rng(0)
    background, scores = rng.normal(size=(500, 2)), np.array([[1.0, 1.0], [1.0, -1.0]])
    repeat = [0] * 10 + [1]
    assert cosine(*comparable("zscore", scores[:, repeat], background[:, repeat])) > 0.8
    assert abs(cosine(*comparable("whitened", scores[:, repeat], background[:, repeat], ridge=1e-6))) < 0.2


@pytest.mark.parametrize("compare_by", COMPARISONS)
def test_same_and_empty(compare_by: str) -> None:
    same = comparable(compare_by, SCORES[[0, 0]], BACKGROUND)
    assert cosine(*same) == pytest.approx(1) and context_spread(*same) == pytest.approx(0, abs=1e-7)
    empty = comparable(compare_by, np.zeros((2, 0)), np.zeros((4, 0)))
    assert cosine(*empty) == 0 and math.isnan(context_spread(*empty))


def test_context_that_all_fit_alike_tells_nothing() -> None:
    background = np.array([[-1.0, 5.0], [-3.0, 5.0]])
    np.testing.assert_allclose(comparable("zscore", SCORES, background), [[1, 0], [0, 0]])


def test_spread_is_that_of_the_mean_of_products() -> None:
    """For unit contributions the cosine is a mean of +-1, whose deviation is known."""
    rng = np.random.default_rng(1)
    first = rng.choice([-1.0, 1.0], size=400)
    share = float((first > 0).mean())
    assert context_spread(first, np.ones(400)) == pytest.approx(2 * math.sqrt(share * (1 - share) / 400), rel=0.15)


def test_many_pairs_and_contexts_drawn_again() -> None:
    """A context that is drawn twice is as one that is there twice."""
    vectors = np.random.default_rng(0).normal(size=(4, 30))
    vectors[3] = 0
    pairs = np.array([[0, 1], [1, 2], [2, 3], [1, 1]])
    scores, spreads = cosines_and_spreads(vectors, pairs, seed=5)
    drawn = np.random.default_rng(5).multinomial(30, np.full(30, 1 / 30), size=RESAMPLES)
    for pair, score, spread in zip(pairs, scores, spreads, strict=True):
        assert score == pytest.approx(cosine(*vectors[pair]))
        expected = np.std([cosine(*np.repeat(vectors[pair], counts, axis=1)) for counts in drawn])
        assert spread == pytest.approx(expected, abs=1e-12)
    scores, spreads = cosines_and_spreads(np.zeros((2, 0)), np.array([[0, 1]]), seed=0)
    assert scores.tolist() == [0] and np.isnan(spreads).all()


def test_errors() -> None:
    with pytest.raises(UserError, match="unknown comparison 'euclid'; expected one of cosine, centered"):
        comparable("euclid", SCORES, BACKGROUND)
    with pytest.raises(UserError, match="needs background sentences"):
        comparable("zscore", SCORES, np.zeros((0, 2)))
