"""Turn results into tables, for a terminal and in Markdown."""

from collections.abc import Sequence

from ctxsim_hf.evaluation.cases import Case
from ctxsim_hf.evaluation.paper_figures import paper_figure
from ctxsim_hf.evaluation.results import AVERAGE, SystemResult, compare
from ctxsim_hf.evaluation.tasks import STS
from ctxsim_hf.runtime.estimates import Estimate

Table = list[list[str]]  # rows of cells, the heading first
_SHORT = {"average_precision": " (AP)", "ndcg_at_10": " (nDCG@10)"}  # beside the name of a task


def main_table(systems: Sequence[SystemResult], paper_rows: Sequence[str]) -> Table:
    """Return the main figures: a row for each system, a column for each task."""
    figures = [system.main_figures() for system in systems]
    shown = {result.task: _SHORT.get(next(iter(result.figures)), "") for result in systems[0].tasks}
    rows = [["x 100, +- half the 95 % interval", *(f"{task}{shown.get(task, '')}" for task in figures[0])]]
    for system, found in zip(systems, figures, strict=True):
        measures = {result.task: next(iter(result.figures)) for result in system.tasks} | {AVERAGE: "spearman"}
        cells = [_cell(figure, system.seed_std(task, measures[task])) for task, figure in found.items()]
        rows.append([system.name, *cells])
    return rows + _paper_part(systems[0], list(figures[0]), paper_rows)


def measure_table(systems: Sequence[SystemResult], measure: str, heading: str) -> Table:
    """Return a row for each system and a column for each task that has this figure; empty if none has."""
    figures = [system.figures(measure) for system in systems]
    if not figures[0]:
        return []
    rows = [[heading, *figures[0]]]
    for system, found in zip(systems, figures, strict=True):
        rows.append([system.name, *(_cell(found[task], system.seed_std(task, measure)) for task in found)])
    return rows


def difference_table(systems: Sequence[SystemResult]) -> Table:
    """Return by how much the first system is ahead of each other one; empty for one system."""
    first, *others = systems
    if not others:
        return []
    rows = [[f"{first.name} ahead of", *first.main_figures()]]
    return rows + [[other.name, *map(show_difference, compare(first, other).values())] for other in others]


def interval_table(systems: Sequence[SystemResult]) -> Table:
    """Return a row for each figure."""
    rows = [["system", "task", "split", "examples", "measure", "x 100", "95 % interval"]]
    for system in systems:
        for result in system.tasks:
            about = [system.name, result.task, result.split, f"{result.pairs:,}"]
            rows += [[*about, measure, show_value(e), show_interval(e)] for measure, e in result.figures.items()]
        for measure in ("spearman", "pearson"):
            if average := system.figures(measure).get(AVERAGE):
                rows.append([system.name, AVERAGE, "", "", measure, show_value(average), show_interval(average)])
    return rows


def case_table(cases: Sequence[Case], first: str, second: str) -> Table:
    """Return pairs on which two systems disagree; in brackets the percentage of the task's pairs that score lower."""
    rows = [["task", "people", first, second, "sentence 1", "sentence 2"]]
    for case in cases:
        figures = (case.gold, case.first, case.second)
        shown = [f"{value:.2f} ({100 * rank:.0f})" for value, rank in figures]
        rows.append([case.task, *shown, case.sentence1, case.sentence2])
    return rows


def undefined_figures(systems: Sequence[SystemResult]) -> list[str]:
    """Return a line for each figure that is undefined, with the reason."""
    return [
        f"{system.name} on {result.task}: no figure, {result.main.undefined}"
        for system in systems
        for result in system.tasks
        if result.main.undefined
    ]


def as_text(table: Table) -> str:
    """Format a table for a terminal."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in table]
    return "\n".join(line.rstrip() for line in lines)


def as_markdown(table: Sequence[Sequence[str]]) -> str:
    """Format a table in Markdown."""
    heading, *rows = table
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines)


def show_difference(estimate: Estimate) -> str:
    """Format a difference, with a star where its interval excludes 0."""
    if estimate.undefined:
        return "undefined"
    return f"{100 * estimate.value:+.1f}{'*' if estimate.low > 0 or estimate.high < 0 else ''}"


def show_value(estimate: Estimate) -> str:
    """Format a figure, times 100."""
    return "undefined" if estimate.undefined else f"{100 * estimate.value:.1f}"


def show_interval(estimate: Estimate) -> str:
    """Format the interval of a figure, times 100, or why there is none."""
    return estimate.undefined or f"{100 * estimate.low:.1f} to {100 * estimate.high:.1f}"


def _paper_part(system: SystemResult, tasks: Sequence[str], paper_rows: Sequence[str]) -> Table:
    """Return the paper's figures for the same columns; it reports test splits only."""
    measures = {result.task: next(iter(result.figures)) for result in system.tasks if result.split == "test"}
    rows = []
    for name in paper_rows:
        known = {task: paper_figure(name, task, measure) for task, measure in measures.items()}
        if AVERAGE in tasks and set(STS) <= measures.keys():
            known[AVERAGE] = sum(known[task] or 0 for task in STS) / len(STS)
        cells = [f"{100 * value:.1f}" if (value := known.get(task)) is not None else "" for task in tasks]
        rows += [[f"paper: {name}", *cells]] if any(cells) else []
    return rows


def _cell(estimate: Estimate, seed_std: float | None) -> str:
    if estimate.undefined:
        return "undefined"
    seeds = "" if seed_std is None else f" sd {100 * seed_std:.1f}"
    return f"{show_value(estimate)} +-{50 * (estimate.high - estimate.low):.1f}{seeds}"
