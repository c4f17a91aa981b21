"""Plot results: a bar with its interval for each system and task, or the arms of an ablation."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ctxsim_hf.evaluation.results import SystemResult
from ctxsim_hf.runtime.files import writing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NO_PLOT = "no plot: pip install matplotlib"
LABEL = "Spearman (accuracy for triplets) x 100"
NAMES = {
    "spearman": "Spearman",
    "accuracy": "accuracy",
    "auc": "AUC",
    "average_precision": "AP",
    "ndcg_at_10": "nDCG@10",
}


def write_plot(systems: Sequence[SystemResult], path: Path) -> str | None:
    """Write a PNG with matplotlib; return a message if that is not installed, else None."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return NO_PLOT
    tasks = list(systems[0].main_figures())
    longest = max(len(system.name) for system in systems)
    # Wide enough for the bars and for the names, which are below the axes, one in a line.
    size = (max(2 + 0.25 * (len(systems) + 1) * len(tasks), 1 + 0.08 * longest), 4 + 0.2 * len(systems))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(systems)
    for number, system in enumerate(systems):
        values, errors = _bars(system)
        places = np.arange(len(tasks)) + (number - (len(systems) - 1) / 2) * width
        axes.bar(places, values, width, label=system.name, yerr=errors, capsize=2)
    axes.set_xticks(range(len(tasks)), tasks, rotation=20)
    axes.set_ylabel(_label(systems[0]))
    figure.legend(fontsize="small", loc="outside lower left")
    _save(figure, path)
    return None


def write_arms_plot(arms: Sequence[tuple[str, SystemResult | None, float | None]], path: Path) -> str | None:
    """Plot our arms with intervals, a series for each task, and the paper's figures as crosses.

    Args:
        arms: Name, result (None where only the paper has the arm) and the paper's figure (None where it has none).
        path (`Path`): The PNG to write.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return NO_PLOT
    longest = max(len(name) for name, _, _ in arms)  # whose slanted name needs room to the left and below
    size = (2 + 0.7 * len(arms) + 0.07 * longest, 3.5 + 0.06 * longest)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    ours = [(place, arm) for place, (_, arm, _) in enumerate(arms) if arm is not None]
    figures = [_bars(arm) for _, arm in ours]
    for number, task in enumerate(ours[0][1].main_figures()):
        values = np.array([values[number] for values, _ in figures])
        errors = np.array([errors[:, number] for _, errors in figures]).T
        axes.errorbar([place for place, _ in ours], values, yerr=errors, fmt="o", capsize=3, label=task)
    known = [(place, paper) for place, (_, _, paper) in enumerate(arms) if paper is not None]
    if known:
        axes.plot(*zip(*known, strict=True), "kx", label="paper, STSb")
    axes.set_xticks(range(len(arms)), [name for name, _, _ in arms], rotation=35, ha="right")
    axes.set_ylabel(LABEL)
    axes.grid(axis="y", alpha=0.3)
    figure.legend(fontsize="small", loc="outside upper right", ncols=4)
    _save(figure, path)
    return None


def _label(system: SystemResult) -> str:
    measures = dict.fromkeys(next(iter(result.figures)) for result in system.tasks)
    if measures.keys() <= {"spearman", "accuracy"}:
        return LABEL
    return f"{', '.join(NAMES[measure] for measure in measures)} x 100"


def _bars(system: SystemResult) -> tuple[np.ndarray, np.ndarray]:
    """Return the main figures (tasks,) and how far their intervals reach down and up (2, tasks)."""
    estimates = list(system.main_figures().values())
    values, lows, highs = (100 * np.array([getattr(e, key) for e in estimates]) for key in ("value", "low", "high"))
    return values, np.stack([values - lows, highs - values])


def _save(figure: "Figure", path: Path) -> None:
    with writing(path) as temporary:
        # Without matplotlib's version in the file, so that equal figures are equal bytes.
        figure.savefig(temporary, format="png", dpi=120, metadata={"Software": None})
