"""Train a surrogate that is never worse than its start.

The start is evaluated before training. The weights of an evaluation are kept if they beat those of the start, by the
paired bootstrap interval of the difference on validation rows, and all evaluations before. If none does, the start is
what is written.
"""

import json
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from accelerate import Accelerator
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from tqdm import tqdm

from ctxsim_hf.runtime.correlation import correlate, spearman
from ctxsim_hf.runtime.estimates import Estimate, bootstrap
from ctxsim_hf.runtime.files import read_json, write_json, writing
from ctxsim_hf.surrogate.training_arguments import BEST, START, SurrogateArguments
from ctxsim_hf.train.loop import TrainingTask, train

MAX_ROWS = 5000  # of validation, spread evenly, that intervals are computed from
KEPT = "checkpoints/kept.safetensors"


class MeasuredTask(TrainingTask, Protocol):
    """A task that says how each validation row came out."""

    baselines: dict[str, float]  # figures that do not depend on the model

    @property
    def headline(self) -> str:
        """The figure that decides: spearman, or accuracy."""

    def outcomes(self, model: Any) -> np.ndarray:
        """Return the score of each validation row, or whether it came out right."""

    def figures(self, outcomes: np.ndarray) -> dict[str, float]:
        """Return figures of these outcomes."""

    @property
    def validation_labels(self) -> np.ndarray:
        """The labels of the validation rows."""


@dataclass(frozen=True)
class Kept:
    """What is known of the weights that are kept."""

    figures: dict[str, float]
    gain: dict[str, float] = field(default_factory=lambda: dict.fromkeys(("gain", "gain_low", "gain_high"), 0.0))
    is_start: bool = False


def train_above_start(
    task: MeasuredTask, arguments: SurrogateArguments, folder: Path, accelerator: Accelerator
) -> dict[str, Any]:
    """Train a task and leave the best weights in its model; return their figures beside those of the start."""
    task.model.to(accelerator.device)
    judged = JudgedTask(task, folder / KEPT, accelerator, arguments.keep == BEST)
    fit = _leave if arguments.keep == START else train
    metrics = fit(judged, arguments, folder, accelerator)
    accelerator.wait_for_everyone()
    kept = judged.kept
    if arguments.keep == BEST:
        task.model.load_state_dict(load_file(folder / KEPT, device=str(accelerator.device)))
        if kept.is_start and accelerator.is_main_process:
            tqdm.write("no weights beat the start on validation, so the start is what is written", file=sys.stderr)
    step = _step_of(kept, task.headline, folder, judged.keeps_best) if accelerator.is_main_process else 0
    starts = {f"{name}_start": value for name, value in judged.start.figures.items()}
    return {**metrics, **kept.figures, **starts, **kept.gain, "kept_step": step}


def _leave(task: Any, arguments: SurrogateArguments, folder: Path, accelerator: Accelerator) -> dict[str, Any]:
    """Train nothing."""
    if accelerator.is_main_process:
        write_json(folder / "history.json", [])
    return {"steps": 0, "tokens": 0}


def _step_of(kept: Kept, name: str, folder: Path, keeps_best: bool) -> int:
    """Return the step of the weights that were kept, 0 for the start. Of equal evaluations, the first is the best."""
    history = read_json(folder / "history.json")
    steps = [row["step"] for row in history if row.get(f"eval/{name}") == kept.figures[name]]
    return 0 if kept.is_start or not steps else int(steps[0 if keeps_best else -1])


class JudgedTask:
    """A task whose evaluations are compared with its start, and whose best weights are kept in a file.

    A run that resumes reads the file. Evaluations that it repeats give the same figures, so the file stays the same.

    Args:
        task (`MeasuredTask`): The task; its model holds the start.
        path (`Path`): The file of the best weights.
        accelerator (`Accelerator`): That of the run.
        keeps_best (`bool`): Whether to keep the best weights; otherwise every evaluation replaces the one before.
    """

    def __init__(self, task: MeasuredTask, path: Path, accelerator: Accelerator, keeps_best: bool) -> None:
        self.task, self.path, self.accelerator, self.keeps_best = task, path, accelerator, keeps_best
        self.model, self.batches, self.collate = task.model, task.batches, task.collate
        outcomes = task.outcomes(task.model)
        self.start = self.kept = Kept(task.figures(outcomes), is_start=True)
        self._start_estimate = self._estimate(outcomes)
        if keeps_best and path.exists():
            with safe_open(path, "pt") as file:
                self.kept = Kept(**json.loads(file.metadata()["kept"]))
        elif keeps_best:
            self._write(task.model)
        accelerator.wait_for_everyone()

    def evaluate(self, model: Any) -> dict[str, float]:
        """Return the figures of a model, and keep its weights if they are the best."""
        outcomes = self.task.outcomes(model)
        figures, estimate = self.task.figures(outcomes), self._estimate(outcomes)
        gain, name = estimate - self._start_estimate, self.task.headline
        found = Kept(figures, {"gain": gain.value, "gain_low": gain.low, "gain_high": gain.high})
        if not self.keeps_best:
            self.kept = found
        elif self._beats_start(estimate) and (self.kept.is_start or figures[name] > self.kept.figures[name]):
            self.kept = found
            self._write(model)
        return figures | self.task.baselines

    def _beats_start(self, estimate: Estimate) -> bool:
        if estimate.undefined or self._start_estimate.undefined:
            return not estimate.undefined
        return (estimate - self._start_estimate).low > 0

    def _write(self, model: Any) -> None:
        weights = self.accelerator.get_state_dict(model)
        if self.accelerator.is_main_process:
            copies = {name: weight.detach().cpu().contiguous().clone() for name, weight in weights.items()}
            with writing(self.path) as temporary:
                save_file(copies, temporary, metadata={"kept": json.dumps(asdict(self.kept))})

    def _estimate(self, outcomes: np.ndarray) -> Estimate:
        some = np.unique(np.linspace(0, len(outcomes) - 1, min(MAX_ROWS, len(outcomes)), dtype=np.int64))
        outcomes, labels = outcomes[some].astype(np.float64), self.task.validation_labels[some].astype(np.float64)
        if self.task.headline == "spearman":
            return correlate(spearman, outcomes, labels)
        return bootstrap(lambda draw: outcomes[draw].mean(1), len(outcomes))
