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
NAMES = {
    "spearman": "Spearman",
    "accuracy": "accuracy",
    "auc": "AUC",
    "average_precision": "AP",
    "ndcg_at_10": "nDCG@10",
}
CHANCE = {"spearman": 0.0, "accuracy": 50.0, "auc": 50.0}  # x 100; that of the others depends on the data
MIN_WIDTH = 4.5  # inches


def write_plot(systems: Sequence[SystemResult], path: Path) -> str | None:
    """Write a PNG with matplotlib, with bars from chance; return a message if it is not installed, else None."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return NO_PLOT
    tasks = list(systems[0].main_figures())
    longest = max(len(system.name) for system in systems)
    # Wide enough for the bars and for the names, which are below the axes.
    width = max(MIN_WIDTH, 2 + 0.25 * (len(systems) + 1) * len(tasks), 1 + 0.08 * longest)
    columns = min(len(systems), max(1, int(width / (0.8 + 0.08 * longest))))
    figure = Figure(figsize=(width, 4 + 0.2 * len(systems) / columns), layout="constrained")
    axes = figure.subplots()
    start = np.array([CHANCE.get(measure, 0.0) for measure in _measures(systems[0]).values()])
    width = min(0.4, 0.8 / len(systems))
    for number, system in enumerate(systems):
        values, errors = _bars(system)
        places = np.arange(len(tasks)) + (number - (len(systems) - 1) / 2) * width
        axes.bar(places, values - start, width, start, label=system.name, yerr=errors, capsize=2)
    for place, chance in enumerate(start):
        axes.plot([place - 0.45, place + 0.45], [chance, chance], "k-", linewidth=1)
    axes.set_xticks(range(len(tasks)), tasks, rotation=20, ha="right", rotation_mode="anchor")
    starts_at_chance = set(_measures(systems[0]).values()) <= set(CHANCE)
    axes.set_ylabel(_label(systems[0]) + ("\n(bars start at chance)" if starts_at_chance else ""))
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    figure.legend(fontsize="small", loc="outside lower left", ncols=columns)
    _save(figure, path)
    return None


def write_arms_plot(
    arms: Sequence[tuple[str, SystemResult | None, float | None]], path: Path, varied: str = ""
) -> str | None:
    """Plot our arms with intervals, a series for each task, and the paper's figures as crosses.

    Args:
        arms: Name, result (None where only the paper has the arm) and the paper's figure (None where it has none).
        path (`Path`): The PNG to write.
        varied (`str`): What differs between the arms.
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
    axes.set_xlabel(varied)
    axes.set_ylabel(_label(ours[0][1]))
    axes.grid(axis="y", alpha=0.3)
    figure.legend(fontsize="small", loc="outside upper right", ncols=4)
    _save(figure, path)
    return None


def _measures(system: SystemResult) -> dict[str, str]:
    """Return the main measure of each task, and of the STS average."""
    measures = {result.task: next(iter(result.figures)) for result in system.tasks}
    return {task: measures.get(task, "spearman") for task in system.main_figures()}


def _label(system: SystemResult) -> str:
    return f"{', '.join(NAMES[measure] for measure in dict.fromkeys(_measures(system).values()))} x 100"


def _bars(system: SystemResult) -> tuple[np.ndarray, np.ndarray]:
    """Return the main figures (tasks,) and how far their intervals reach down and up (2, tasks)."""
    estimates = list(system.main_figures().values())
    values, lows, highs = (100 * np.array([getattr(e, key) for e in estimates]) for key in ("value", "low", "high"))
    return values, np.stack([values - lows, highs - values])


def _save(figure: "Figure", path: Path) -> None:
    with writing(path) as temporary:
        # Without matplotlib's version in the file, so that equal figures are equal bytes.
        figure.savefig(temporary, format="png", dpi=120, metadata={"Software": None})
