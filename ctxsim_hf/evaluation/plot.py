"""Results -> a picture: a bar for each system and task, with its interval."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ctxsim_hf.evaluation.results import SystemResult
from ctxsim_hf.stage import writing


def write_plot(systems: Sequence[SystemResult], path: Path) -> str | None:
    """Draw a PNG with matplotlib. Gives what to say instead where that is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return "no plot: pip install matplotlib"
    tasks = list(systems[0].main_figures())
    figure = Figure(figsize=(2 + 0.25 * (len(systems) + 1) * len(tasks), 4), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(systems)
    for number, system in enumerate(systems):
        estimates = list(system.main_figures().values())
        values, lows, highs = (
            100 * np.array([getattr(e, key) for e in estimates]) for key in ("value", "low", "high")
        )
        places = np.arange(len(tasks)) + (number - (len(systems) - 1) / 2) * width
        axes.bar(places, values, width, label=system.name, yerr=(values - lows, highs - values), capsize=2)
    axes.set_xticks(range(len(tasks)), tasks, rotation=20)
    axes.set_ylabel("Spearman (accuracy for triplets) x 100")
    axes.legend(fontsize="small")
    with writing(path) as temporary:
        # Without matplotlib's version in the file, so that equal figures are equal bytes.
        figure.savefig(temporary, format="png", dpi=120, metadata={"Software": None})
    return None
