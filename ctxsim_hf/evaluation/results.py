"""Systems and tasks -> figures: scores of all pairs at once and rankings, judged task by task, averaged, compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ctxsim_hf.evaluation.examples import Examples, PairExamples, Similarity
from ctxsim_hf.evaluation.ranking import describe_ranking
from ctxsim_hf.evaluation.retrieval import Retrieval
from ctxsim_hf.evaluation.tasks import STS
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.estimates import Estimate, mean_estimate

AVERAGE = "STS average"


@dataclass(frozen=True)
class TaskResult:
    """What one system earns on one task; correlations run from -1 to 1, all other figures from 0 to 1."""

    task: str
    split: str
    pairs: int  # or triplets, or queries
    figures: Mapping[str, Estimate]  # the main one first; of several seeds, the mean
    seeds: Mapping[str, Sequence[float]]  # the figures of each
    scores: Sequence[np.ndarray]  # of each seed for each pair; none for retrieval
    remarks: Sequence[str] = ()  # what a reader of the figures must know of the system

    @property
    def main(self) -> Estimate:
        """The main figure."""
        return next(iter(self.figures.values()))


@dataclass(frozen=True)
class SystemResult:
    """The figures of one system."""

    name: str
    tasks: Sequence[TaskResult]

    def figures(self, measure: str) -> dict[str, Estimate]:
        """Return the figure of each task that has this measure, and the STS average if all seven sets are there."""
        found = {result.task: result.figures[measure] for result in self.tasks if measure in result.figures}
        return _with_average(found)

    def main_figures(self) -> dict[str, Estimate]:
        """Return the main figure of each task, and the STS average."""
        return _with_average({result.task: result.main for result in self.tasks})

    def seed_std(self, task: str, measure: str) -> float | None:
        """Return the standard deviation of a figure, or of the STS average, over seeds; None for one seed."""
        tasks = STS if task == AVERAGE else (task,)
        seeds = np.mean([result.seeds[measure] for result in self.tasks if result.task in tasks], axis=0)
        return float(np.std(seeds, ddof=1)) if len(seeds) > 1 else None


@dataclass(frozen=True)
class Answers:
    """What a system answered to all tasks, and what a report says of it."""

    arrays: Sequence[np.ndarray]  # of each task: the scores of its pairs, or the ranking of its documents
    remarks: Sequence[str]  # of each task: how its documents were ranked; empty for nothing
    signature: str | None  # what the scores of an origin depend on
    settings: dict[str, Any] | None  # of an origin


def judge(name: str, seeds: Sequence[Similarity], tasks: Sequence[Examples]) -> SystemResult:
    """Ask a system, or several that differ by their seed, and judge their answers."""
    return judge_answers(name, [answer(name, system, tasks) for system in seeds], tasks)


def answer(name: str, system: Similarity, tasks: Sequence[Examples]) -> Answers:
    """Score the pairs of all tasks in one go, so that a sentence of several tasks is encoded once.

    Args:
        name (`str`): Name of the system in tables.
        system: The system.
        tasks: The examples to score.
    """
    arrays = _answer(name, system, tasks)
    remarks = [describe_ranking(system, task.documents) if isinstance(task, Retrieval) else "" for task in tasks]
    settings = getattr(system, "settings", None)  # an origin's
    return Answers(arrays, remarks, getattr(system, "signature", None), settings and settings.to_json())


def judge_answers(name: str, seeds: Sequence[Answers], tasks: Sequence[Examples]) -> SystemResult:
    """Judge the answers of the seeds of a system."""
    by_task = zip(tasks, seeds[0].remarks, *(seed.arrays for seed in seeds), strict=True)
    return SystemResult(name, [_judge(name, remark, task, arrays) for task, remark, *arrays in by_task])


def compare(system: SystemResult, other: SystemResult) -> dict[str, Estimate]:
    """Return by how much a system is ahead of another on each task and on average, by a paired bootstrap."""
    theirs = other.main_figures()
    return {task: figure - theirs[task] for task, figure in system.main_figures().items()}


def to_json(estimate: Estimate) -> dict[str, Any]:
    """Return an estimate for JSON, which has no nan: null and the reason stand for an undefined one."""
    if estimate.undefined:
        return {"value": None, "low": None, "high": None, "undefined": estimate.undefined}
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}


def _with_average(figures: dict[str, Estimate]) -> dict[str, Estimate]:
    if not figures.keys() >= set(STS):
        return figures
    return figures | {AVERAGE: mean_estimate([figures[task] for task in STS])}


def _answer(name: str, system: Similarity, tasks: Sequence[Examples]) -> list[np.ndarray]:
    """Return the scores of each task's pairs, or the ranking of its documents."""
    pair_tasks = [task for task in tasks if isinstance(task, PairExamples)]
    scores = iter(_score(name, system, pair_tasks) if pair_tasks else [])
    return [_rank(name, system, task) if isinstance(task, Retrieval) else next(scores) for task in tasks]


def _rank(name: str, system: Similarity, task: Retrieval) -> np.ndarray:
    try:
        return task.rank(system)
    except UserError as error:
        raise UserError(f"{name} on {task.task}: {error}") from error


def _score(name: str, system: Similarity, tasks: Sequence[PairExamples]) -> list[np.ndarray]:
    """Return the scores of each task's pairs."""
    pairs = [task.pairs() for task in tasks]
    first, second = ([sentence for task in pairs for sentence in task[side]] for side in (0, 1))
    scores = np.asarray(system.similarity(first, second))
    if scores.shape != (len(first),):
        raise UserError(f"{name}: expected one score for each of {len(first)} pairs, got an array {scores.shape}")
    ends = np.cumsum([len(sentences) for sentences, _ in pairs])
    return np.split(scores, ends[:-1])


def _judge(name: str, remark: str, task: Examples, answers: Sequence[np.ndarray]) -> TaskResult:
    try:
        judged = [task.judge(seed) for seed in answers]
    except UserError as error:
        raise UserError(f"{name} on {task.task}: {error}") from error
    figures = {measure: mean_estimate([seed[measure] for seed in judged]) for measure in judged[0]}
    seeds = {measure: [seed[measure].value for seed in judged] for measure in judged[0]}
    if not isinstance(task, Retrieval):
        return TaskResult(task.task, task.split, len(task), figures, seeds, answers)
    remarks = [f"{name} on {task.task}: {remark}"] if remark else []
    return TaskResult(task.task, task.split, len(task), figures, seeds, [], remarks)
