"""Checkpoints of a training run: the state of accelerate (weights, optimizer, random generators) and our progress.

A checkpoint is renamed when it is whole, and holds the digests of its files: a run resumes from what was saved, or not
at all.
"""

import math
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from accelerate import Accelerator

from ctxsim_hf.runtime.cache import check_digests, write_digests
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import explain_write_errors, read_json, write_json


@dataclass
class Progress:
    """How far a training run has come, and its history."""

    layout: list[Any]  # number of processes and precision, which must not change when a run resumes
    step: int = 0
    epoch: int = 0
    step_in_epoch: int = 0
    seconds: float = 0.0
    tokens: int = 0
    loss: float = math.nan  # mean over the last interval of logging
    history: list[dict[str, float]] = field(default_factory=list)  # losses and evaluations, by step


def save_checkpoint(accelerator: Accelerator, folder: Path, progress: Progress, keep: int) -> None:
    """Save a checkpoint and remove all but the last `keep`. Every process must call it."""
    name = f"step-{progress.step:08d}"
    temporary = folder / f"{name}.tmp"
    with explain_write_errors(folder / name):
        accelerator.save_state(str(temporary))
    accelerator.wait_for_everyone()  # each process writes the states of its generators
    if accelerator.is_main_process:
        write_json(temporary / "progress.json", asdict(progress))
        write_digests(temporary)
        shutil.rmtree(folder / name, ignore_errors=True)
        temporary.rename(folder / name)
        for old in _checkpoints(folder)[:-keep]:
            shutil.rmtree(old)
    accelerator.wait_for_everyone()


def load_checkpoint(accelerator: Accelerator, checkpoint: Path, layout: list[Any]) -> Progress:
    """Load a checkpoint; refuse a damaged one, and one of a run with another layout."""
    check_digests(
        checkpoint, f"remove {str(checkpoint)!r} to resume from the one before, or start again with --overwrite"
    )
    progress = Progress(**read_json(checkpoint / "progress.json"))
    if progress.layout != layout:
        processes, precision = progress.layout
        raise UserError(
            f"{str(checkpoint)!r} was saved on {processes} process(es) with mixed precision {precision!r}, but this "
            f"run is on {layout[0]} with {layout[1]!r}; resume as before, or start again with --overwrite"
        )
    accelerator.load_state(str(checkpoint))
    return progress


def last_checkpoint(folder: Path) -> Path | None:
    """Return the latest checkpoint in a folder, or None."""
    return max(_checkpoints(folder), default=None)


def _checkpoints(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("step-*") if path.suffix != ".tmp")
