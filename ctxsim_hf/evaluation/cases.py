"""Case analysis: the pairs on which people side with one of two systems against the other."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from ctxsim_hf.evaluation.examples import Examples, GradedPairs
from ctxsim_hf.evaluation.results import SystemResult

Ranked = tuple[float, float]  # a score, and the share of the task's pairs below it: scales differ, shares do not


@dataclass(frozen=True)
class Case:
    task: str
    sentence1: str
    sentence2: str
    gold: Ranked
    first: Ranked
    second: Ranked

    @property
    def first_is_nearer(self) -> float:
        """How much nearer the first system is to people than the second, from -1 to 1."""
        gold, first, second = (figure[1] for figure in (self.gold, self.first, self.second))
        return abs(second - gold) - abs(first - gold)


def find_cases(tasks: Sequence[Examples], first: SystemResult, second: SystemResult, number: int) -> list[Case]:
    """The `number` pairs where people side most with the first system, then as many where with the second."""
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
