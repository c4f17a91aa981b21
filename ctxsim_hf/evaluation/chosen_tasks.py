"""What a user wants judged, public tasks and data of their own -> the examples of all of it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from annotated_types import Ge

from ctxsim_hf.evaluation.examples import Examples
from ctxsim_hf.evaluation.own_pairs import load_pairs
from ctxsim_hf.evaluation.retrieval_data import load_retrieval
from ctxsim_hf.evaluation.tasks import expand_tasks, load_task
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.validation import check_value


@dataclass(frozen=True)
class ChosenTasks:
    """
    Args:
        tasks: Names of public tasks and groups of them.
        pairs: Where pairs of the user's own are, each as `LOCATION` or `NAME=LOCATION`.
        retrieval: Folders with a corpus and queries, named likewise.
        split (`str`): Split of all that has splits.
        data_root (`str` or `Path`, *optional*): Folder of public datasets named by their id; None means the Hub.
        limit (`int`, *optional*): So many examples of each, spread evenly; None means all.
    """

    tasks: Sequence[str]
    pairs: Sequence[str] = ()
    retrieval: Sequence[str] = ()
    split: str = "test"
    data_root: str | Path | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        check_value("limit", self.limit, Annotated[int, Ge(2)] | None)

    def load(self) -> list[Examples]:
        """Read everything; refuse two tasks of one name."""
        loaded: list[Examples] = [load_task(task, self.split, self.data_root) for task in expand_tasks(self.tasks)]
        loaded += [load_pairs(spelling, self.split) for spelling in self.pairs]
        loaded += [load_retrieval(spelling, self.split) for spelling in self.retrieval]
        if repeated := [name for name, count in Counter(examples.task for examples in loaded).items() if count > 1]:
            raise UserError(f"two tasks are called {repeated[0]!r}; give one of them another name: NAME=FILE")
        return loaded if self.limit is None else [examples.some(self.limit) for examples in loaded]
