"""Keep what systems answered while an evaluation is under way, so that it goes on after a kill.

The answers of each system are a file in `<output>/unfinished`, named by a digest of the system, of what shapes its
answers, and of the data. When the evaluation is finished, its report holds them, and the files are removed.
"""

import contextlib
import importlib.util
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import xxhash

from ctxsim_hf import __version__
from ctxsim_hf.encoder.thresholds import THRESHOLDS_FILE
from ctxsim_hf.evaluation.examples import Examples, PairExamples
from ctxsim_hf.evaluation.report import WRITTEN
from ctxsim_hf.evaluation.results import Answers
from ctxsim_hf.evaluation.retrieval import Retrieval
from ctxsim_hf.evaluation.systems import System, SystemResources
from ctxsim_hf.runtime.checks import UNDER_WAY
from ctxsim_hf.runtime.files import digest_file, writing

# What an evaluation itself writes into the folder of a system, such as its report; no score depends on it.
_WRITTEN = frozenset({*WRITTEN, THRESHOLDS_FILE})


class KeptAnswers:
    """
    Args:
        output (`str`, *optional*): Folder of the report. None keeps nothing.
        resources (`SystemResources`): What systems are opened with.
        tasks (`Sequence[Examples]`): What they are asked.
    """

    def __init__(self, output: str | None, resources: SystemResources, tasks: Sequence[Examples]) -> None:
        self._folder = None if output is None else Path(output) / UNDER_WAY
        chunks = None if resources.chunks is None else _describe_path(Path(resources.chunks))
        self._asked = [
            *(asdict(resources.origin_settings), chunks, str(resources.data_root), __version__, version("torch")),
            *map(_describe_task, tasks),
        ]

    def get(self, system: System, compute: Callable[[], Answers]) -> Answers:
        """Return the answers of a system, computed now or before a kill."""
        if self._folder is None:
            return compute()
        key = json.dumps([_describe_system(system), self._asked], sort_keys=True, default=str)
        path = self._folder / f"{xxhash.xxh3_128_hexdigest(key.encode('utf-8', 'surrogatepass'))}.npz"
        with contextlib.suppress(OSError, ValueError, KeyError, BadZipFile):  # none yet, or damaged
            return _load(path)
        answers = compute()
        about = {"remarks": list(answers.remarks), "signature": answers.signature, "settings": answers.settings}
        with writing(path) as temporary, temporary.open("wb") as file:
            arrays = {f"task{number}": array for number, array in enumerate(answers.arrays)}
            np.savez(file, allow_pickle=False, about=np.array(json.dumps(about)), **arrays)
        return answers

    def clear(self) -> None:
        """Remove the files, once a report holds what they do."""
        if self._folder is not None and self._folder.is_dir():
            for path in self._folder.glob("*.npz"):
                path.unlink()
            with contextlib.suppress(OSError):  # it holds something else
                self._folder.rmdir()


def is_under_way(output: str | Path) -> bool:
    """Return whether an evaluation that was killed has kept answers here."""
    return (Path(output) / UNDER_WAY).is_dir()


def _load(path: Path) -> Answers:
    with np.load(path, allow_pickle=False) as stored:
        about: dict[str, Any] = json.loads(str(stored["about"]))
        arrays = [stored[f"task{number}"] for number in range(len(stored.files) - 1)]
    return Answers(arrays, about["remarks"], about["signature"], about["settings"])


def _describe_task(task: Examples) -> list[Any]:
    """Return what identifies the examples: their texts, by a digest."""
    asked: Any = None
    if isinstance(task, Retrieval):
        asked = [list(task.queries), list(task.documents)]
    elif isinstance(task, PairExamples):
        asked = task.pairs()
    text = json.dumps(asked).encode("utf-8")
    return [task.task, task.split, len(task), xxhash.xxh3_128_hexdigest(text)]


def _describe_system(system: System) -> list[Any]:
    if system.kind == "rrf":
        return [system.kind, *map(_describe_system, system.members())]
    where = system.located()
    if system.kind == "python":
        spec = importlib.util.find_spec(where.partition(":")[0])
        place = Path(spec.origin) if spec and spec.origin else Path(where)
    else:
        place = Path(where)
    return [system.kind, where, _describe_path(place) if where and place.exists() else None]


def _describe_path(path: Path) -> Any:
    """Return the digest of a file, or the sizes and times of change of the files of a folder that shape its scores."""
    if path.is_file():
        return digest_file(path)
    files = {file.relative_to(path): file for file in sorted(path.rglob("*")) if file.is_file()}
    read = {name: files[name].stat() for name in files if name.name not in _WRITTEN and UNDER_WAY not in name.parts}
    return [[name.as_posix(), state.st_size, state.st_mtime_ns] for name, state in read.items()]
