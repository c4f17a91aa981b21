"""Find the pairs on which one of two systems is much closer to the human scores than the other."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from ctxsim_hf.evaluation.examples import Examples, GradedPairs
from ctxsim_hf.evaluation.results import SystemResult

Ranked = tuple[float, float]  # a score, and the share of the task's pairs below it, which does not depend on scale


@dataclass(frozen=True)
class Case:
    """A pair with its human score and those of two systems."""

    task: str
    sentence1: str
    sentence2: str
    gold: Ranked
    first: Ranked
    second: Ranked

    @property
    def first_is_nearer(self) -> float:
        """How much closer the first system is to the human score than the second, from -1 to 1."""
        gold, first, second = (figure[1] for figure in (self.gold, self.first, self.second))
        return abs(second - gold) - abs(first - gold)


def find_cases(tasks: Sequence[Examples], first: SystemResult, second: SystemResult, number: int) -> list[Case]:
    """Return the `number` pairs on which the first system is closest to people, then as many for the second."""
    cases: list[Case] = []
    for task, one, other in zip(tasks, first.tasks, second.tasks, strict=True):
        if isinstance(task, GradedPairs):
            columns = (task.scores, np.mean(one.scores, axis=0), np.mean(other.scores, axis=0))
            ranked = zip(*(zip(column.tolist(), _shares(column), strict=True) for column in columns), strict=True)
            for sentence1, sentence2, figures in zip(task.sentences1, task.sentences2, ranked, strict=True):
                cases.append(Case(task.task, sentence1, sentence2, *figures))
    cases.sort(key=lambda case: -case.first_is_nearer)
    return cases[:number] + cases[: -number - 1 : -1]


def _shares(scores: np.ndarray) -> list[float]:
    return ((rankdata(scores) - 0.5) / len(scores)).tolist()
