"""Scores judged: planted systems, pooled sets by hand, seeds, averages, pairs scored in one go."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import scipy.stats

from ctxsim_hf.encoder.encoder_signal import EncoderSignal
from ctxsim_hf.evaluation.cases import find_cases
from ctxsim_hf.evaluation.examples import Examples, GradedPairs, Triplets
from ctxsim_hf.evaluation.results import AVERAGE, SystemResult, compare, judge
from ctxsim_hf.evaluation.systems import PairScorer
from ctxsim_hf.evaluation.tasks import STS
from ctxsim_hf.runtime.errors import UserError

PAIRS = 400


def sts_tasks() -> list[GradedPairs]:
    """The seven sets, made up: a pair's second sentence is its score."""
    generator = np.random.default_rng(0)
    tasks = []
    for name in STS:
        gold = generator.integers(0, 51, size=PAIRS) / 10
        tasks.append(GradedPairs(name, "test", [f"{name} {i}" for i in range(PAIRS)], [str(g) for g in gold], gold))
    return tasks


def perfect(sentences1: Sequence[str], sentences2: Sequence[str]) -> np.ndarray:
    return np.array([math.exp(float(sentence)) for sentence in sentences2])


def random_system(seed: int) -> PairScorer:
    return PairScorer(lambda first, second: np.random.default_rng(seed).normal(size=len(first)))


def noisy_system(seed: int) -> PairScorer:
    return PairScorer(
        lambda first, second: np.array(second, dtype=float) + 3 * random_system(seed).similarity(first, second)
    )


def test_a_planted_perfect_and_a_planted_random_system() -> None:
    tasks = sts_tasks()
    best, chance = judge("best", [PairScorer(perfect)], tasks), judge("chance", [random_system(0)], tasks)
    assert [figure.value for figure in best.main_figures().values()] == pytest.approx([1.0] * 8)
    assert best.tasks[0].figures["pearson"].value < 0.9  # which a curve costs something
    average = chance.main_figures()[AVERAGE]
    assert abs(average.value) < 0.06 and average.low < 0 < average.high
    ahead = compare(best, chance)
    assert all(difference.low > 0.8 for difference in ahead.values()) and AVERAGE in ahead


def test_a_pooled_set_by_hand() -> None:
    # Two parts of one year. In each the system puts both pairs in order, but it scores the second part higher as a
    # whole: scores 1 2 | 3 4, people 2 3 | 0 1. Squared differences of ranks 4 * 2^2, so 1 - 6 * 16 / (4 * 15).
    task = GradedPairs("sts12", "test", list("abcd"), list("efgh"), np.array([2.0, 3.0, 0.0, 1.0]))
    result = judge("system", [PairScorer(lambda first, second: np.array([1.0, 2.0, 3.0, 4.0]))], [task])
    assert result.tasks[0].figures["spearman"].value == pytest.approx(1 - 6 * 16 / 60)


def test_figures_are_scipys_task_by_task() -> None:
    tasks = sts_tasks()
    result = judge("noisy", [noisy_system(1)], tasks)
    for task, judged in zip(tasks, result.tasks, strict=True):
        (scores,) = judged.scores
        assert judged.figures["spearman"].value == pytest.approx(scipy.stats.spearmanr(scores, task.scores).statistic)
        assert judged.figures["pearson"].value == pytest.approx(scipy.stats.pearsonr(scores, task.scores).statistic)
    values = [judged.main.value for judged in result.tasks]
    assert result.main_figures()[AVERAGE].value == pytest.approx(np.mean(values))
    assert AVERAGE not in SystemResult("six", result.tasks[:6]).main_figures()


def test_seeds_are_a_mean_and_a_deviation() -> None:
    tasks = sts_tasks()
    singles = [judge("one", [noisy_system(seed)], tasks) for seed in (1, 2, 3)]
    together = judge("three", [noisy_system(seed) for seed in (1, 2, 3)], tasks)
    for task in (STS[0], AVERAGE):
        values = [single.main_figures()[task].value for single in singles]
        assert together.main_figures()[task].value == pytest.approx(np.mean(values))
        assert together.seed_std(task, "spearman") == pytest.approx(np.std(values, ddof=1))
    assert singles[0].seed_std(AVERAGE, "spearman") is None


def test_accuracy_of_triplets() -> None:
    triplets = Triplets("wikipedia-sections", "test", ["a"] * 4, ["2", "5", "1", "1"], ["1", "2", "1", "3"])
    figures = judge("system", [PairScorer(perfect)], [triplets]).tasks[0].figures
    assert list(figures) == ["accuracy"] and figures["accuracy"].value == (1 + 1 + 0.5 + 0) / 4
    assert 0 <= figures["accuracy"].low < figures["accuracy"].value < figures["accuracy"].high <= 1


def test_each_distinct_sentence_is_encoded_once_over_all_tasks() -> None:
    seen: list[str] = []

    def encode(sentences: list[str]) -> np.ndarray:
        seen.extend(sentences)
        return np.array([[len(sentence), 1.0] for sentence in sentences])

    tasks: list[Examples] = [
        GradedPairs("stsb", "test", ["x", "yy", "x"], ["zzz", "x", "yy"], np.array([1.0, 2.0, 3.0])),
        Triplets("wikipedia-sections", "test", ["yy"], ["x"], ["new one"]),
    ]
    result = judge("encoder", [EncoderSignal(encode)], tasks)
    assert sorted(seen) == ["new one", "x", "yy", "zzz"]
    assert result.tasks[0].scores[0][0] == pytest.approx((1 * 3 + 1) / math.sqrt(2 * 10))  # (1, 1) and (3, 1)


def test_zero_vectors_have_no_angle() -> None:
    zero = EncoderSignal(lambda sentences: np.zeros((len(sentences), 3)))
    assert zero.similarity(["a"], ["b"]).tolist() == [0]
    with pytest.raises(UserError, match="a vector for each of 2 sentences"):
        EncoderSignal(lambda sentences: np.zeros(3)).similarity(["a"], ["b"])


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (lambda number: np.zeros((number, 1)), r"wrong: expected one score for each of 2800 pairs, got .*\(2800, 1\)"),
        (lambda number: np.full(number, np.nan), "wrong on sts12: expected finite scores, but 400 of 400 are nan"),
    ],
    ids=["shape", "nan"],
)
def test_scores_that_are_none(scores: Callable[[int], np.ndarray], message: str) -> None:
    with pytest.raises(UserError, match=message):
        judge("wrong", [PairScorer(lambda first, second: scores(len(first)))], sts_tasks())


def test_cases_are_those_where_two_systems_differ_most() -> None:
    gold = np.array([0.0, 1, 2, 3, 4, 5])
    task = GradedPairs("stsb", "test", list("abcdef"), list("ABCDEF"), gold)
    first = judge(
        "first", [PairScorer(lambda one, other: np.array([5.0, 1, 2, 3, 4, 0]))], [task]
    )  # wrong at both ends
    second = judge("second", [PairScorer(lambda one, other: np.array([0.0, 1, 3, 2, 4, 5]))], [task])  # in the middle
    cases = find_cases([task], first, second, 2)
    assert [case.sentence1 for case in cases[:2]] == ["c", "d"]
    assert sorted(case.sentence1 for case in cases[2:]) == ["a", "f"]
    assert cases[0].first_is_nearer == pytest.approx(1 / 6)
    assert (cases[0].gold, cases[0].second) == ((2, pytest.approx(2.5 / 6)), (3, pytest.approx(3.5 / 6)))
