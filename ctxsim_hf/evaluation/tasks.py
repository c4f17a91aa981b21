"""A task's name -> its pairs with the scores people gave: STS and the like, from the Hub or from folders."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ctxsim_hf.errors import UserError


@dataclass(frozen=True)
class Task:
    hub_id: str
    splits: tuple[str, ...]
    score_range: tuple[float, float]  # what people could choose from
    sentence1: str = "sentence1"  # columns
    sentence2: str = "sentence2"
    score: str = "score"


TASKS = {
    "stsb": Task("mteb/stsbenchmark-sts", ("validation", "test", "train"), (0, 5)),
}


@dataclass(frozen=True)
class TaskPairs:
    """The pairs of one split of one task."""

    task: str
    split: str
    sentences1: Sequence[str]
    sentences2: Sequence[str]
    scores: np.ndarray  # (pairs,) by people

    def __len__(self) -> int:
        return len(self.scores)

    def some(self, number: int) -> "TaskPairs":
        """At most so many pairs, spread evenly: tasks are ordered by where their sentences came from."""
        number = min(number, len(self))
        rows = [len(self) * i // number for i in range(number)]
        first, second = ([sentences[row] for row in rows] for sentences in (self.sentences1, self.sentences2))
        return TaskPairs(self.task, self.split, first, second, self.scores[rows])


def check_task(name: str, split: str) -> Task:
    """The row of the table, if it has that split."""
    if name not in TASKS:
        raise UserError(f"unknown task {name!r}; expected one of {', '.join(TASKS)}")
    task = TASKS[name]
    if split not in task.splits:
        raise UserError(f"the task {name!r} has no split {split!r}; expected one of {', '.join(task.splits)}")
    return task


def load_task(name: str, split: str, data_root: str | Path | None = None) -> TaskPairs:
    """Read the pairs of a task.

    Args:
        name (`str`): A name in `TASKS`.
        split (`str`): One of its splits.
        data_root (`str` or `Path`, *optional*): Folder that holds the task's data set in a folder named by its id;
            None reads it from the Hub.
    """
    import datasets  # a second to import; whoever only needs the table should not wait

    task = check_task(name, split)
    location = task.hub_id if data_root is None else str(Path(data_root) / task.hub_id)
    if data_root is not None and not Path(location).is_dir():
        raise UserError(f"expected the data of the task {name!r} in a folder {location!r}, which does not exist")
    try:
        rows = datasets.load_dataset(location, split=split)
    except Exception as error:  # the library raises many kinds, all with a readable message
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        hint = "" if data_root else "; without a network, name a folder that has it with --data-root"
        raise UserError(f"expected the data set of the task {name!r} in {location!r}: {reason}{hint}") from error
    if missing := {task.sentence1, task.sentence2, task.score} - set(rows.column_names):
        found = ", ".join(rows.column_names)
        raise UserError(f"expected a column {min(missing)!r} in {location!r}, split {split!r}, found only {found}")
    scores = np.array(rows[task.score], dtype=np.float64)
    _check_range(scores, task, location)
    return TaskPairs(name, split, list(rows[task.sentence1]), list(rows[task.sentence2]), scores)


def _check_range(scores: np.ndarray, task: Task, location: str) -> None:
    """Hidden labels are often published as -1 or null; a correlation with those would be a figure all the same."""
    low, high = task.score_range
    outside = np.flatnonzero(~((scores >= low) & (scores <= high)))
    if outside.size:
        raise UserError(
            f"expected scores from {low} to {high} in {location!r}, but {outside.size} of {len(scores)} are outside, "
            f"the first at pair {outside[0]}: {scores[outside[0]]}"
        )
