"""A task's name -> its examples: STS and the like, from the Hub or from folders."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ctxsim_hf.evaluation.examples import Examples, GradedPairs, Triplets
from ctxsim_hf.runtime.errors import UserError


@dataclass(frozen=True)
class Task:
    hub_id: str
    splits: tuple[str, ...] = ("test",)
    config: str | None = None  # of the data set
    # What people could choose from; None means triplets, which nobody graded.
    score_range: tuple[float, float] | None = (0, 5)

    @property
    def columns(self) -> tuple[str, str, str]:
        return ("anchor", "positive", "negative") if self.score_range is None else ("sentence1", "sentence2", "score")


# All pairs of a year of STS are pooled: one correlation over all of them, whichever part they come from.
TASKS = {
    "sts12": Task("mteb/sts12-sts", ("test", "train")),
    "sts13": Task("mteb/sts13-sts"),
    "sts14": Task("mteb/sts14-sts"),
    "sts15": Task("mteb/sts15-sts"),
    "sts16": Task("mteb/sts16-sts"),
    "stsb": Task("mteb/stsbenchmark-sts", ("validation", "test", "train")),
    "sickr": Task("mteb/sickr-sts", score_range=(1, 5)),
    "afs": Task("ucsc/argument-facet-similarity"),
    "wikipedia-sections": Task(
        "sentence-transformers/wikipedia-sections", ("validation", "test", "train"), "triplet", score_range=None
    ),
}
# A word for several.
STS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")
GROUPS = {"sts": STS, "all": tuple(TASKS)}


def expand_tasks(names: Sequence[str]) -> list[str]:
    """Names of tasks, groups spelled out, each once."""
    return list(dict.fromkeys(task for name in names for task in GROUPS.get(name, (name,))))


def check_task(name: str, split: str) -> Task:
    """The row of the table, if it has that split."""
    if name not in TASKS:
        raise UserError(f"unknown task {name!r}; expected one of {', '.join([*TASKS, *GROUPS])}")
    task = TASKS[name]
    if split not in task.splits:
        raise UserError(f"the task {name!r} has no split {split!r}; expected one of {', '.join(task.splits)}")
    return task


def load_task(name: str, split: str, data_root: str | Path | None = None) -> Examples:
    """Read the examples of a task.

    Args:
        name (`str`): A name in `TASKS`.
        split (`str`): One of its splits.
        data_root (`str` or `Path`, *optional*): Folder that holds the task's data set in a folder named by its id;
            None reads it from the Hub.
    """
    task = check_task(name, split)
    location = task.hub_id if data_root is None else str(Path(data_root) / task.hub_id)
    if data_root is not None and not Path(location).is_dir():
        raise UserError(f"expected the data of the task {name!r} in a folder {location!r}, which does not exist")
    rows = _read(name, task, location, split)
    where = f"{location!r}, split {split!r}"
    first, second, third = _check_columns(rows, task.columns, where)
    if task.score_range is None:
        return Triplets(name, split, *(_strings(rows, column, where) for column in task.columns))
    scores = np.array(rows[third], dtype=np.float64)
    _check_range(scores, task.score_range, where)
    return GradedPairs(name, split, _strings(rows, first, where), _strings(rows, second, where), scores)


def _read(name: str, task: Task, location: str, split: str) -> Any:
    import datasets  # a second to import; whoever only needs the table should not wait

    try:
        return datasets.load_dataset(location, task.config, split=split)
    except Exception as error:  # the library raises many kinds, all with a readable message
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        hint = "" if Path(location).is_dir() else "; without a network, name a folder that has it with --data-root"
        raise UserError(f"expected the data set of the task {name!r} in {location!r}: {reason}{hint}") from error


def _check_columns(rows: Any, columns: tuple[str, str, str], where: str) -> tuple[str, str, str]:
    for column in columns:
        if column not in rows.column_names:
            raise UserError(f"expected a column {column!r} in {where}, found only {', '.join(rows.column_names)}")
    if not len(rows):
        raise UserError(f"expected examples in {where}, found none")
    return columns


def _strings(rows: Any, column: str, where: str) -> list[str]:
    values = list(rows[column])
    for row, value in enumerate(values):
        if not isinstance(value, str):
            raise UserError(f"expected text in the column {column!r} of {where}, but row {row} has {value!r}")
    return values


def _check_range(scores: np.ndarray, score_range: tuple[float, float], where: str) -> None:
    """Hidden labels are often published as -1 or null; a correlation with those would be a figure all the same."""
    low, high = score_range
    outside = np.flatnonzero(~((scores >= low) & (scores <= high)))
    if outside.size:
        raise UserError(
            f"expected scores from {low} to {high} in {where}, but {outside.size} of {len(scores)} are outside, "
            f"the first at pair {outside[0]}: {scores[outside[0]]}"
        )
