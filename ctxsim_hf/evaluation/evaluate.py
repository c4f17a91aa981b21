"""A system and tasks -> correlations with the scores people gave: `ctxsim evaluate`."""

import math
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from transformers.hf_argparser import HfArg

from ctxsim_hf import __version__
from ctxsim_hf.errors import UserError
from ctxsim_hf.evaluation.baselines import BASELINES, Similarity
from ctxsim_hf.evaluation.correlation import Estimate, correlate, pearson, spearman
from ctxsim_hf.evaluation.tasks import TASKS, TaskPairs, check_task, load_task
from ctxsim_hf.origin.similarity_command import SettingsArguments
from ctxsim_hf.stage import write_json


@dataclass(kw_only=True)
class EvaluateArguments(SettingsArguments):
    origin: str | None = HfArg(default=None, help="Evaluate the Origin similarity in this folder, or of this id.")
    baseline: str | None = HfArg(default=None, help=f"Evaluate a baseline instead: {', '.join(BASELINES)}.")
    tasks: list[str] = HfArg(default_factory=lambda: ["stsb"], help=f"Of {', '.join(TASKS)}.")
    split: str = HfArg(default="test", help="Split of the tasks; choose settings on validation, report on test.")
    data_root: str | None = HfArg(
        default=None, help="Folder of data sets named by their id, such as mteb/stsbenchmark-sts; the Hub if left out."
    )
    chunks: str | None = HfArg(
        default=None,
        help="Folder made by ctxsim chunk for a baseline to learn from; documents in DATA_ROOT/corpora if left out.",
    )
    limit: int | None = HfArg(default=None, help="Score so many pairs of each task, spread evenly; all if left out.")
    output: str | None = HfArg(default=None, help="JSON file for the figures and what they were made with.")

    def __post_init__(self) -> None:
        if (self.origin is None) == (self.baseline is None):
            came = "neither" if self.origin is None else "both"
            raise UserError(f"expected one of --origin FOLDER and --baseline NAME, got {came}")
        if self.baseline is not None and self.baseline not in BASELINES:
            raise UserError(f"unknown baseline {self.baseline!r}; expected one of {', '.join(BASELINES)}")
        if self.origin is not None and self.chunks is not None:
            raise UserError("--chunks is what a baseline learns from; leave it out with --origin")
        if self.limit is not None and self.limit < 2:
            raise UserError(f"--limit must be at least 2, got {self.limit}")
        for task in self.tasks:
            check_task(task, self.split)


@dataclass(frozen=True)
class TaskResult:
    """Agreement with people on one task; correlations run from -1 to 1."""

    task: str
    split: str
    pairs: int
    spearman: Estimate
    pearson: Estimate


def evaluate_similarity(
    system: Similarity,
    tasks: Sequence[str],
    split: str = "test",
    data_root: str | Path | None = None,
    limit: int | None = None,
) -> list[TaskResult]:
    """Correlate a system's scores with those of people.

    Args:
        system (`Similarity`): Anything with `similarity(sentences1, sentences2)` that gives one number a pair.
        tasks (`Sequence[str]`): Names in `ctxsim_hf.evaluation.tasks.TASKS`.
        split (`str`): Split of the tasks.
        data_root (`str` or `Path`, *optional*): Folder of data sets named by their id; None reads them from the Hub.
        limit (`int`, *optional*): Score so many pairs of each task, spread evenly; None means all.
    """
    return [_evaluate(system, pairs) for pairs in _load(tasks, split, data_root, limit)]


def run(arguments: EvaluateArguments) -> str:
    """A table for a terminal; the figures in full go to `--output`."""
    # Before the system is opened, which may take minutes: a folder that is not there should not come to light then.
    tasks = _load(arguments.tasks, arguments.split, arguments.data_root, arguments.limit)
    name, system = _open_system(arguments)
    results = [_evaluate(system, pairs) for pairs in tasks]
    if arguments.output is not None:
        write_json(Path(arguments.output), _record(name, arguments, results))
    return f"{name}\n{_table(results)}"


def _load(tasks: Sequence[str], split: str, data_root: str | Path | None, limit: int | None) -> list[TaskPairs]:
    loaded = [load_task(task, split, data_root) for task in tasks]
    return loaded if limit is None else [pairs.some(limit) for pairs in loaded]


def _evaluate(system: Similarity, pairs: TaskPairs) -> TaskResult:
    scores = system.similarity(pairs.sentences1, pairs.sentences2)
    spearman_estimate, pearson_estimate = (correlate(m, scores, pairs.scores) for m in (spearman, pearson))
    return TaskResult(pairs.task, pairs.split, len(pairs), spearman_estimate, pearson_estimate)


def _open_system(arguments: EvaluateArguments) -> tuple[str, Similarity]:
    if arguments.origin is not None:
        system = arguments.open_origin(arguments.origin)
        return system.signature, system
    name = str(arguments.baseline)
    return name, BASELINES[name](arguments.chunks, arguments.data_root)


def _record(name: str, arguments: EvaluateArguments, results: Sequence[TaskResult]) -> dict[str, Any]:
    packages = ("datasets", "numpy", "scipy")
    return {
        "system": name,
        "arguments": {flag: value for flag, value in asdict(arguments).items() if flag != "output"},
        "results": [_without_nan(asdict(result)) for result in results],
        "versions": {"ctxsim_hf": __version__, "python": platform.python_version()}
        | {package: version(package) for package in packages},
    }


def _without_nan(value: Any) -> Any:
    """JSON has no nan; null stands for it, beside the reason."""
    if isinstance(value, dict):
        return {key: _without_nan(part) for key, part in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value


def _table(results: Sequence[TaskResult]) -> str:
    rows = [("task", "split", "pairs", "Spearman x100 (95 %)", "Pearson x100 (95 %)")]
    for result in results:
        figures = (_show(result.spearman), _show(result.pearson))
        rows.append((result.task, result.split, f"{result.pairs:,}", *figures))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    reasons = {f"{r.task}: no correlation, {r.spearman.undefined}" for r in results if r.spearman.undefined}
    return "\n".join([*lines, *sorted(reasons)])


def _show(estimate: Estimate) -> str:
    return f"{100 * estimate.value:.1f} ({100 * estimate.low:.1f} to {100 * estimate.high:.1f})"
