"""Train one model for each fold, evaluate it on the fold it did not see, and average the figures.

The models are not kept.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np

from ctxsim_hf.runtime.files import write_json
from ctxsim_hf.runtime.processes import broadcast_from_main, enter_on_main_process
from ctxsim_hf.runtime.record import read_stage
from ctxsim_hf.runtime.stage import Stage
from ctxsim_hf.surrogate.training_arguments import SurrogateArguments
from ctxsim_hf.train.loop import make_accelerator
from ctxsim_hf.train.training_stage import METRICS_FILE, PACKAGES, finish_with_metrics

FOLDS = "folds"
FIGURES = ("pearson", "spearman", "l2", "l2_of_the_mean", "spearman_tfidf")


def cross_validate(
    command: str,
    arguments: SurrogateArguments,
    inputs: dict[str, Any],
    train: Callable[[SurrogateArguments], dict[str, Any]],
) -> dict[str, Any]:
    """Train every fold with `train`, as a stage within this one; return the counts of stage.json."""
    accelerator = make_accelerator(arguments)
    stage = Stage(command, arguments, inputs, PACKAGES)
    with ExitStack() as stack:
        enter_on_main_process(stage, stack, accelerator)
        if not stage.finished:
            if not broadcast_from_main(stage.has(METRICS_FILE)):
                counts = [
                    train(replace(arguments, fold=fold, output=str(stage.folder / FOLDS / str(fold))))
                    for fold in range(arguments.folds)
                ]
                if accelerator.is_main_process:
                    write_json(stage.folder / METRICS_FILE, _summary(counts))
            if accelerator.is_main_process:
                finish_with_metrics(stage, FOLDS)
    accelerator.wait_for_everyone()
    found: dict[str, Any] = read_stage(arguments.output, command)["counts"]
    return found


def _summary(counts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the mean of each figure over the folds, and the standard deviation of the correlations."""
    values = {name: [fold[name] for fold in counts] for name in FIGURES}
    means = {name: float(np.mean(found)) for name, found in values.items()}
    deviations = {f"{name}_deviation": float(np.std(values[name], ddof=1)) for name in FIGURES[:2]}
    return {"folds": len(counts), **means, **deviations}
