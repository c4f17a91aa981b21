"""The results.json that `ctxsim evaluate --output` left in a folder -> a table, and what the Hub shows of it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult

from ctxsim_hf.evaluation.tasks import TASKS
from ctxsim_hf.hub.publication import read_json

RESULTS_FILE = "results.json"
# Key of a row -> its name in a table, and on the Hub.
METRICS = {"spearman": ("Spearman", "spearmanr"), "pearson": ("Pearson", "pearsonr"), "accuracy": ("Accuracy",) * 2}


def read_results(folder: Path) -> list[dict[str, Any]]:
    """The rows that have a figure, of the first system in the file: the others are what it was compared with. None if
    there is no file."""
    rows = [row for row in read_json(folder / RESULTS_FILE).get("results", ()) if "task" in row]
    return [row for row in rows if row.get("system") == rows[0].get("system") and any(_figures(row))]


def eval_results(rows: Sequence[dict[str, Any]]) -> Iterator[EvalResult]:
    for row in rows:
        task = TASKS.get(row["task"])
        for (name, hub_name), figure in zip(METRICS.values(), _figures(row), strict=True):
            if figure:
                yield EvalResult(
                    task_type="sentence-similarity",
                    dataset_type=task.hub_id if task else row["task"],
                    dataset_name=row["task"],
                    dataset_split=row.get("split"),
                    metric_type=hub_name.lower(),
                    metric_name=name,
                    metric_value=round(figure["value"], 4),
                )


def results_table(rows: Sequence[dict[str, Any]]) -> str:
    """Empty for no rows."""
    head = ("task", "split", "pairs", *(f"{name} x 100 (95 %)" for name, _ in METRICS.values()))
    cells = [
        (row["task"], row.get("split", ""), f"{row.get('pairs', 0):,}", *(_show(figure) for figure in _figures(row)))
        for row in rows
    ]
    return markdown_table(head, cells) if cells else ""


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines)


def _figures(row: dict[str, Any]) -> list[dict[str, float] | None]:
    """One for each of METRICS; None where it is undefined, or was not measured."""
    found = [row.get(key) for key in METRICS]
    return [figure if isinstance(figure, dict) and figure.get("value") is not None else None for figure in found]


def _show(figure: dict[str, float] | None) -> str:
    if figure is None:
        return "-"
    value = f"{100 * figure['value']:.1f}"
    return f"{value} ({100 * figure['low']:.1f} to {100 * figure['high']:.1f})" if "low" in figure else value
