"""Where a training run is, on disk: accelerate's state (weights, optimizer, random generators) and our progress.

A checkpoint gets its name when it is whole, so one that exists can be trusted.
"""

import json
import math
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path

from accelerate import Accelerator

from ctxsim_hf.stage import write_json


@dataclass
class Progress:
    step: int = 0
    epoch: int = 0
    step_in_epoch: int = 0
    seconds: float = 0.0
    tokens: int = 0
    loss: float = math.nan  # mean since the look before the last
    history: list[dict[str, float]] = field(default_factory=list)  # losses and evaluations, by step


def save_checkpoint(accelerator: Accelerator, folder: Path, progress: Progress, keep: int) -> None:
    """Called by every process; `keep` checkpoints stay."""
    name = f"step-{progress.step:08d}"
    temporary = folder / f"{name}.tmp"
    accelerator.save_state(str(temporary))
    accelerator.wait_for_everyone()  # each process writes its generators' states there
    if accelerator.is_main_process:
        write_json(temporary / "progress.json", asdict(progress))
        shutil.rmtree(folder / name, ignore_errors=True)
        temporary.rename(folder / name)
        for old in _checkpoints(folder)[:-keep]:
            shutil.rmtree(old)
    accelerator.wait_for_everyone()


def load_checkpoint(accelerator: Accelerator, checkpoint: Path) -> Progress:
    accelerator.load_state(str(checkpoint))
    return Progress(**json.loads((checkpoint / "progress.json").read_text("utf-8")))


def last_checkpoint(folder: Path) -> Path | None:
    return max(_checkpoints(folder), default=None)


def _checkpoints(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("step-*") if path.suffix != ".tmp")
