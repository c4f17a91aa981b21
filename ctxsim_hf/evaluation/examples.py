"""Hold the examples of a task and turn a system's scores into figures.

Graded pairs: people gave each a score, and a system's scores should rise with theirs. Labelled pairs: people said of
each whether it is alike, and those that are should score higher. Triplets: of two sentences, which is nearer to a
third? All are lists of pairs to a system, which gives one number a pair. Retrieval stands in retrieval.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self, runtime_checkable

import numpy as np

from ctxsim_hf.evaluation.label_measures import auc, average_precision, measure_labels
from ctxsim_hf.runtime.correlation import check_scores, correlate, pearson, spearman
from ctxsim_hf.runtime.estimates import Estimate, bootstrap, undefined


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

    @property
    def remarks(self) -> Sequence[str]:
        """What a reader of the figures must know of the examples."""
        ...

    def judge(self, scores: np.ndarray) -> dict[str, Estimate]:
        """Return the figures that scores of `pairs()`, or a ranking, earn; the main one first."""
        ...

    def some(self, number: int) -> Self:
        """Return at most so many examples, spread evenly, since tasks are ordered by the source of their sentences."""
        ...


@runtime_checkable
class PairExamples(Examples, Protocol):
    """Examples that are pairs to a system."""

    def pairs(self) -> tuple[list[str], list[str]]:
        """Return the pairs that a system has to score."""
        ...


@dataclass(frozen=True)
class GradedPairs:
    """Pairs with human scores."""

    task: str
    split: str
    sentences1: Sequence[str]
    sentences2: Sequence[str]
    scores: np.ndarray  # (pairs,)

    @property
    def remarks(self) -> Sequence[str]:
        return ()

    def __len__(self) -> int:
        return len(self.scores)

    def pairs(self) -> tuple[list[str], list[str]]:
        return list(self.sentences1), list(self.sentences2)

    def judge(self, scores: np.ndarray) -> dict[str, Estimate]:
        return {measure.__name__: correlate(measure, scores, self.scores) for measure in (spearman, pearson)}

    def some(self, number: int) -> Self:
        rows = spread(len(self), number)
        first, second = ([sentences[row] for row in rows] for sentences in (self.sentences1, self.sentences2))
        return replace(self, sentences1=first, sentences2=second, scores=self.scores[rows])


@dataclass(frozen=True)
class LabelledPairs(GradedPairs):
    """Pairs whose scores are labels: 1 for alike, 0 for not."""

    @property
    def remarks(self) -> Sequence[str]:
        share = 100 * self.scores.mean()
        return [
            f"{self.task}: {int(self.scores.sum()):,} of {len(self):,} pairs have label 1, so by chance average "
            f"precision is {share:.1f}, and AUC 50"
        ]

    def judge(self, scores: np.ndarray) -> dict[str, Estimate]:
        return {measure.__name__: measure_labels(measure, scores, self.scores) for measure in (average_precision, auc)}


@dataclass(frozen=True)
class Triplets:
    """Anchors, each with a sentence that is closer to it and one that is not."""

    task: str
    split: str
    anchors: Sequence[str]
    positives: Sequence[str]  # nearer to the anchor
    negatives: Sequence[str]

    @property
    def remarks(self) -> Sequence[str]:
        return ()

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
        rows = spread(len(self), number)
        columns = (self.anchors, self.positives, self.negatives)
        return Triplets(self.task, self.split, *([column[row] for row in rows] for column in columns))


def spread(length: int, number: int) -> list[int]:
    """Return at most `number` places of a list, spread evenly."""
    number = min(number, length)
    return [length * i // number for i in range(number)]
