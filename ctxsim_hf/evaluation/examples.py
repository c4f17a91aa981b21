"""Hold the examples of a task and turn a system's scores into figures.

Graded pairs have human scores, with which the scores of a system should correlate. Triplets ask which of two sentences
is closer to a third. Either way a system scores a list of pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from ctxsim_hf.evaluation.correlation import check_scores, correlate, pearson, spearman
from ctxsim_hf.evaluation.estimates import Estimate, bootstrap, undefined


class Similarity(Protocol):
    """A system to evaluate. It gives each pair one score, higher for more alike; the scale does not matter."""

    def similarity(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> np.ndarray: ...


class Examples(Protocol):
    """The examples of one split of one task."""

    @property
    def task(self) -> str: ...
    @property
    def split(self) -> str: ...
    def __len__(self) -> int: ...

    def pairs(self) -> tuple[list[str], list[str]]:
        """Return the pairs that a system has to score."""
        ...

    def judge(self, scores: np.ndarray) -> dict[str, Estimate]:
        """Return the figures of the scores of `pairs()`, the main one first."""
        ...

    def some(self, number: int) -> Self:
        """Return at most so many examples, spread evenly, since tasks are ordered by the source of their sentences."""
        ...


@dataclass(frozen=True)
class GradedPairs:
    """Pairs with human scores."""

    task: str
    split: str
    sentences1: Sequence[str]
    sentences2: Sequence[str]
    scores: np.ndarray  # (pairs,)

    def __len__(self) -> int:
        return len(self.scores)

    def pairs(self) -> tuple[list[str], list[str]]:
        return list(self.sentences1), list(self.sentences2)

    def judge(self, scores: np.ndarray) -> dict[str, Estimate]:
        return {measure.__name__: correlate(measure, scores, self.scores) for measure in (spearman, pearson)}

    def some(self, number: int) -> "GradedPairs":
        rows = _spread(len(self), number)
        first, second = ([sentences[row] for row in rows] for sentences in (self.sentences1, self.sentences2))
        return GradedPairs(self.task, self.split, first, second, self.scores[rows])


@dataclass(frozen=True)
class Triplets:
    """Anchors, each with a sentence that is closer to it and one that is not."""

    task: str
    split: str
    anchors: Sequence[str]
    positives: Sequence[str]  # nearer to the anchor
    negatives: Sequence[str]

    def __len__(self) -> int:
        return len(self.anchors)

    def pairs(self) -> tuple[list[str], list[str]]:
        return [*self.anchors, *self.anchors], [*self.positives, *self.negatives]

    def judge(self, scores: np.ndarray) -> dict[str, Estimate]:
        """Return the accuracy; equal scores count as half right."""
        near, far = np.split(check_scores(scores, 2 * len(self)), 2)
        if not len(self):
            return {"accuracy": undefined("there are no triplets")}
        right = np.where(near == far, 0.5, near > far)
        return {"accuracy": bootstrap(lambda draw: right[draw].mean(axis=-1), len(self))}

    def some(self, number: int) -> "Triplets":
        rows = _spread(len(self), number)
        columns = (self.anchors, self.positives, self.negatives)
        return Triplets(self.task, self.split, *([column[row] for row in rows] for column in columns))


def _spread(length: int, number: int) -> list[int]:
    number = min(number, length)
    return [length * i // number for i in range(number)]
