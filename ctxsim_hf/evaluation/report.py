"""Report the results of systems on tasks: tables, results.json and a plot."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ctxsim_hf.evaluation.cases import Case, find_cases
from ctxsim_hf.evaluation.examples import Examples
from ctxsim_hf.evaluation.label_free import MEANINGS
from ctxsim_hf.evaluation.paper_figures import ALL_ROWS, OWN_ROWS
from ctxsim_hf.evaluation.plot import write_plot
from ctxsim_hf.evaluation.results import AVERAGE, SystemResult, compare, to_json
from ctxsim_hf.evaluation.tables import (
    as_markdown,
    as_text,
    case_table,
    difference_table,
    interval_table,
    main_table,
    measure_table,
    undefined_figures,
)
from ctxsim_hf.evaluation.tasks import STS
from ctxsim_hf.runtime.checks import check_files
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import describe_file, read_json, read_sealed, seal, write_json, writing

SCORES_FILE = "scores.npy"
RESULTS_FILE = "results.json"
TABLES_FILE = "results.md"
WRITTEN = (RESULTS_FILE, TABLES_FILE, "results.png", SCORES_FILE)
HEADINGS = {
    "spearman": "Spearman's correlation with people",
    "accuracy": "accuracy: how often the nearer of two sentences scores higher (by chance, 50)",
    "auc": "AUC: how often a related pair scores higher than an unrelated one (by chance, 50)",
    "average_precision": "average precision (AP): mean precision at the pairs with label 1, the highest score first",
    "ndcg_at_10": "normalised discounted cumulative gain (nDCG@10): the first ten documents against the ten best",
}
# Other figures that the screen shows, in tables of their own.
SECOND_TABLES = {
    "pearson": "Pearson",
    "auc": "AUC (by chance, 50)",
    "mrr_at_10": "MRR@10 (1 / rank of the first relevant document, 0 below ten)",
}
ALL_FIGURES = "All figures."  # heads the table that repeats those above with all intervals
DIFFERENCES = "A star marks a significant difference: its paired 95 % interval excludes 0"


def refuse_foreign_results(folder: Path) -> None:
    """Refuse a folder with files of these names that no finished evaluation wrote."""
    about = read_json(folder / RESULTS_FILE)
    if isinstance(about, dict) and {"arguments", "results"} <= about.keys():
        return
    if found := [name for name in WRITTEN if (folder / name).exists()]:
        raise UserError(
            f"{str(folder / found[0])!r} was not written by ctxsim evaluate and would be replaced; move it away, or "
            "choose another --output"
        )


def read_report(folder: Path) -> tuple[dict[str, Any], str]:
    """Return the content of results.json and of results.md; refuse a folder in which these or the scores changed."""
    remedy = f"remove {str(folder / RESULTS_FILE)!r} and run the same command again"
    about = read_sealed(folder / RESULTS_FILE, remedy)
    check_files(folder, about.get("files", {}), remedy)
    return about, (folder / TABLES_FILE).read_text("utf-8")


@dataclass(frozen=True)
class Report:
    """The results of systems on tasks."""

    tasks: Sequence[Examples]
    systems: Sequence[SystemResult]
    num_cases: int = 0
    remarks: Sequence[str] = ()  # what a reader of the figures must know

    @property
    def notes(self) -> list[str]:
        """Remarks, and figures that are undefined."""
        return [*self.remarks, *undefined_figures(self.systems)]

    @property
    def heading(self) -> str:
        """What the figures and the tasks mean."""
        results = self.systems[0].tasks
        measures = dict.fromkeys(next(iter(result.figures)) for result in results)
        parts = [HEADINGS[measure] for measure in measures]
        parts += [f"{result.task}: {MEANINGS[result.task]}" for result in results if result.task in MEANINGS]
        heading = "; ".join(parts)
        return heading[0].upper() + heading[1:]

    def to_text(self) -> str:
        """Format the report for a terminal."""
        parts = [as_text(main_table(self.systems, OWN_ROWS))]
        parts += [as_text(table) for item in SECOND_TABLES.items() if (table := measure_table(self.systems, *item))]
        if table := difference_table(self.systems):
            parts += [DIFFERENCES, as_text(table)]
        if table := self._case_table():
            parts.append(as_text(table))
        return "\n\n".join([self.heading, *parts, *(["\n".join(self.notes)] if self.notes else [])])

    def write(self, folder: Path, about: dict[str, Any]) -> str:
        """Write scores.npy, results.md, results.png, and last results.json, which has the digests of what is read
        again; return a line that says so."""
        with writing(folder / SCORES_FILE) as path, path.open("wb") as file:
            np.save(file, self.scores(), allow_pickle=False)
        with writing(folder / TABLES_FILE) as path:
            path.write_text(self.to_markdown(), "utf-8")
        no_plot = self.draw(folder / "results.png")
        files = {name: describe_file(folder / name) for name in (SCORES_FILE, TABLES_FILE)}
        write_json(folder / RESULTS_FILE, seal(about | self.to_json() | {"files": files}))
        return f"{folder} has results.json, results.md" + (f"; {no_plot}" if no_plot else ", results.png")

    def scores(self) -> np.ndarray:
        """Return the score that each system gives each pair, averaged over seeds: (systems, pairs), one task after
        another. Rankings are left out."""
        rows = [
            [np.mean(result.scores, axis=0, dtype=np.float64) for result in system.tasks if result.scores]
            for system in self.systems
        ]
        return np.stack([np.concatenate([np.zeros(0), *scores]) for scores in rows])

    def draw(self, path: Path) -> str | None:
        """Plot the figures; return why not, or None."""
        return write_plot(self.systems, path)

    def to_json(self) -> dict[str, Any]:
        """Return figures as fractions of 1: a row for each system and task, averages, and differences."""
        first, *others = self.systems
        rows = [
            {"system": system.name, "task": result.task, "split": result.split, "pairs": result.pairs}
            | {measure: to_json(figure) for measure, figure in result.figures.items()}
            | {"seeds": {measure: list(values) for measure, values in result.seeds.items() if len(values) > 1}}
            | ({"remarks": list(result.remarks)} if result.remarks else {})
            for system in self.systems
            for result in system.tasks
        ]
        averages = [
            {"system": system.name, "measure": measure, "tasks": list(STS)} | to_json(figures[AVERAGE])
            for system in self.systems
            for measure in ("spearman", "pearson")
            if AVERAGE in (figures := system.figures(measure))
        ]
        differences = [
            {"system": first.name, "other": other.name}
            | {task: to_json(figure) for task, figure in compare(first, other).items()}
            for other in others
        ]
        return {"results": rows, "averages": averages, "differences": differences}

    def to_markdown(self) -> str:
        """Format the report in Markdown."""
        parts = [f"{self.heading}.", as_markdown(main_table(self.systems, ALL_ROWS))]
        if table := difference_table(self.systems):
            parts += [f"{DIFFERENCES}.", as_markdown(table)]
        parts += [ALL_FIGURES, as_markdown(interval_table(self.systems)), *self.notes]
        if table := self._case_table():
            parts += ["Pairs on which the first system is closer to people, then the second.", as_markdown(table)]
        return "\n\n".join(parts) + "\n"

    def _case_table(self) -> list[list[str]]:
        if not self.num_cases:
            return []
        first, second = self.systems[:2]
        cases: list[Case] = find_cases(self.tasks, first, second, self.num_cases)
        return case_table(cases, first.name, second.name)
