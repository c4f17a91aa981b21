"""Train one model for each fold, evaluate it on the fold it did not see, and average the figures.

The models are not kept.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from accelerate import Accelerator

from ctxsim_hf.runtime.files import write_json
from ctxsim_hf.runtime.stage import Stage
from ctxsim_hf.surrogate.training_arguments import SurrogateArguments
from ctxsim_hf.train.training_stage import METRICS_FILE, run_on_all_processes

FOLDS = "folds"
FIGURES = ("pearson", "spearman", "l2", "l2_of_the_mean", "spearman_tfidf")


def cross_validate(
    command: str,
    arguments: SurrogateArguments,
    inputs: dict[str, Any],
    train: Callable[[SurrogateArguments], dict[str, Any]],
) -> dict[str, Any]:
    """Train every fold with `train`, as a stage within this one; return the counts of stage.json."""

    def train_folds(stage: Stage, accelerator: Accelerator) -> None:
        start = None if arguments.start is None else str(arguments.start)  # the same files for all folds
        counts = [
            train(replace(arguments, init=start, fold=fold, output=str(stage.folder / FOLDS / str(fold))))
            for fold in range(arguments.folds)
        ]
        if accelerator.is_main_process:
            write_json(stage.folder / METRICS_FILE, _summary(counts))

    return run_on_all_processes(command, arguments, inputs, train_folds, FOLDS)


def _summary(counts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the mean of each figure over the folds, and the standard deviation of the correlations."""
    values = {name: [fold[name] for fold in counts] for name in FIGURES}
    means = {name: float(np.mean(found)) for name, found in values.items()}
    deviations = {f"{name}_deviation": float(np.std(values[name], ddof=1)) for name in FIGURES[:2]}
    return {"folds": len(counts), **means, **deviations}
