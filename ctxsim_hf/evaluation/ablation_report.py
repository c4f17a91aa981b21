"""Report the arms of an ablation in one table and a plot, with the paper's figures."""

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ctxsim_hf.evaluation.plot import write_arms_plot
from ctxsim_hf.evaluation.report import ALL_FIGURES, DIFFERENCES, Report
from ctxsim_hf.evaluation.results import SystemResult, compare
from ctxsim_hf.evaluation.tables import (
    Table,
    as_markdown,
    interval_table,
    show_difference,
    show_interval,
    show_value,
)


class Row(NamedTuple):
    """An arm of ours, of the paper, or of both."""

    name: str
    arm: SystemResult | None  # None where only the paper has the arm
    paper: float | None  # None where the paper does not have the arm


@dataclass(frozen=True)
class AblationReport(Report):
    """A report whose systems are arms, the full one first.

    Args:
        about (`str`): What is varied, and what is not.
        paper (`Mapping[str, float]`): The paper's figures by the name of the arm, the full one first; none if the
            paper does not have this ablation.
    """

    about: str = ""
    paper: Mapping[str, float] = field(default_factory=dict)

    def rows(self) -> Iterator[Row]:
        """Yield our arms, then those that only the paper has."""
        for system in self.systems:
            yield Row(system.name, system, self.paper.get(system.name))
        ours = {system.name for system in self.systems}
        for name, figure in self.paper.items():
            if name not in ours:
                yield Row(name, None, figure)

    def table(self) -> Table:
        """Return a row for each arm, with its difference from the first."""
        full, *_ = self.systems
        tasks = list(full.main_figures())
        full_of_paper = next(iter(self.paper.values()), 0.0)
        columns = [cell for task in tasks for cell in (task, "95 % interval", "vs first arm")]
        rows = [["arm", *columns, *(["paper", "vs its first arm"] if self.paper else [])]]
        for name, arm, paper in self.rows():
            cells = [""] * (3 * len(tasks))
            if arm is not None:
                figures, ahead = arm.main_figures(), compare(arm, full)
                cells = []
                for task in tasks:
                    gap = "" if arm is full else show_difference(ahead[task])
                    cells += [show_value(figures[task]), show_interval(figures[task]), gap]
            gap = "" if paper in (None, full_of_paper) else f"{paper - full_of_paper:+.2f}"
            theirs = ["" if paper is None else f"{paper:.2f}", gap] if self.paper else []
            rows.append([name, *cells, *theirs])
        return rows

    def to_json(self) -> dict[str, Any]:
        """Return all figures, with the paper's."""
        return super().to_json() | {"paper": [{"arm": name, "stsb": figure} for name, figure in self.paper.items()]}

    def to_markdown(self) -> str:
        """Format the report in Markdown."""
        heading = f"{self.heading}, x 100. {DIFFERENCES}."
        if self.paper:
            heading += " The paper's figures are those of its own models on STSb."
        parts = [self.about, heading]
        parts += [as_markdown(self.table()), ALL_FIGURES, as_markdown(interval_table(self.systems))]
        return "\n\n".join([*parts, *self.notes]) + "\n"

    def draw(self, path: Path) -> str | None:
        """Plot the arms; return why not, or None."""
        varied = textwrap.fill(self.about.removesuffix("."), 50)
        return write_arms_plot([(row.name, row.arm, row.paper) for row in self.rows()], path, varied)
