"""Turn the results.json of `ctxsim evaluate --output` into a table and into metadata for the Hub."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from huggingface_hub import EvalResult

from ctxsim_hf.evaluation.report import RESULTS_FILE
from ctxsim_hf.evaluation.tables import as_markdown
from ctxsim_hf.evaluation.tasks import TASKS
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import digest_file, read_sealed
from ctxsim_hf.runtime.record import STAGE_FILE

# Key of a row -> its name in a table, and on the Hub.
METRICS = {
    "spearman": ("Spearman", "spearmanr"),
    "pearson": ("Pearson", "pearsonr"),
    "accuracy": ("Accuracy", "accuracy"),
    "average_precision": ("AP", "average_precision"),
    "auc": ("AUC", "roc_auc"),
    "ndcg_at_10": ("nDCG@10", "ndcg_at_10"),
    "mrr_at_10": ("MRR@10", "mrr_at_10"),
}


class Results(NamedTuple):
    """The figures of one folder."""

    rows: list[dict[str, Any]]  # one for each task that has a figure
    signature: str | None  # settings of an origin; None for other systems


def read_results(folder: Path) -> Results:
    """Return the figures of this folder, which may be one system of several or one seed; none without a file."""
    about = read_sealed(folder / RESULTS_FILE, "write it again with ctxsim evaluate")
    if not about:
        return Results([], None)
    made_by = digest_file(folder / STAGE_FILE)
    for name, stages in about.get("stages", {}).items():
        if made_by in stages:
            seed = stages.index(made_by)
            rows = [_of_seed(row, seed) for row in about["results"] if row["system"] == name]
            signatures = about.get("signatures", {}).get(name)
            return Results([row for row in rows if any(_figures(row))], signatures and signatures[seed])
    raise UserError(
        f"{str(folder / RESULTS_FILE)!r} has figures of other folders only; name {str(folder)!r} among the systems of "
        "ctxsim evaluate, or remove the file"
    )


def eval_results(rows: Sequence[dict[str, Any]]) -> Iterator[EvalResult]:
    """Yield the figures on public tasks; those on a user's own documents have no dataset on the Hub."""
    for row in rows:
        for (name, hub_name), figure in zip(METRICS.values(), _figures(row), strict=True):
            if figure and row["task"] in TASKS:
                yield EvalResult(
                    task_type="sentence-similarity",
                    dataset_type=TASKS[row["task"]].hub_id,
                    dataset_name=row["task"],
                    dataset_split=row.get("split"),
                    metric_type=hub_name,
                    metric_name=name,
                    metric_value=round(figure["value"], 4),
                )


def results_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return a Markdown table with a column for each metric; empty without rows."""
    if not rows:
        return ""
    columns = list(zip(*map(_figures, rows), strict=True))
    measured = {name: column for (name, _), column in zip(METRICS.values(), columns, strict=True) if any(column)}
    head = ("task", "split", "pairs", *(f"{name} x 100 (95 %)" for name in measured))
    about = [(row["task"], row.get("split", ""), f"{row.get('pairs', 0):,}") for row in rows]
    cells = zip(*([_show(figure) for figure in column] for column in measured.values()), strict=True)
    return as_markdown([head, *(first + shown for first, shown in zip(about, cells, strict=True))])


def _of_seed(row: dict[str, Any], seed: int) -> dict[str, Any]:
    """Return a row with the figures of one seed instead of their mean, and so without an interval."""
    seeds = {measure: values for measure, values in row.get("seeds", {}).items() if row[measure]["value"] is not None}
    return row | {measure: {"value": values[seed]} for measure, values in seeds.items()}


def _figures(row: dict[str, Any]) -> list[dict[str, float] | None]:
    """Return the figure of each of METRICS; None where it is undefined or was not measured."""
    found = [row.get(key) for key in METRICS]
    return [figure if isinstance(figure, dict) and figure.get("value") is not None else None for figure in found]


def _show(figure: dict[str, float] | None) -> str:
    if figure is None:
        return "-"
    value = f"{100 * figure['value']:.1f}"
    return f"{value} ({100 * figure['low']:.1f} to {100 * figure['high']:.1f})" if "low" in figure else value
