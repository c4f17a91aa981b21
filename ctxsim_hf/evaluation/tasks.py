"""Load the examples of a task by name, such as STS, from the Hub or from a folder."""

from collections.abc import Sequence
from pathlib import Path

from ctxsim_hf.evaluation.examples import GradedPairs, PairExamples, Triplets
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.public_datasets import PUBLIC_DATASETS, PublicDataset, labels_of, read_public_dataset

# All pairs of a year of STS are pooled: one correlation over all of its parts.
STS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")
TASKS = {name: PUBLIC_DATASETS[name] for name in (*STS, "afs", "wikipedia-sections")}
GROUPS = {"sts": STS, "all": tuple(TASKS)}  # names of several tasks


def expand_tasks(names: Sequence[str]) -> list[str]:
    """Return the names of tasks, groups spelled out, each once."""
    return list(dict.fromkeys(task for name in names for task in GROUPS.get(name, (name,))))


def check_task(name: str, split: str) -> PublicDataset:
    """Return the dataset of a task, if it has that split."""
    if name not in TASKS:
        raise UserError(f"unknown task {name!r}; expected one of {', '.join([*TASKS, *GROUPS])}")
    dataset = TASKS[name]
    if split not in dataset.splits:
        raise UserError(f"the task {name!r} has no split {split!r}; expected one of {', '.join(dataset.splits)}")
    return dataset


def load_task(name: str, split: str, data_root: str | Path | None = None) -> PairExamples:
    """Read the examples of a task.

    Args:
        name (`str`): A name in `TASKS`.
        split (`str`): One of its splits.
        data_root (`str` or `Path`, *optional*): Folder that holds the task's dataset in a folder named by its id;
            None reads it from the Hub.
    """
    dataset = check_task(name, split)
    table = read_public_dataset(name, split, data_root)
    sentences = [table[column].to_pylist() for column in dataset.sentences]
    if dataset.label is None:
        return Triplets(name, split, *sentences)
    first, second = sentences
    return GradedPairs(name, split, first, second, labels_of(table, dataset.label))
