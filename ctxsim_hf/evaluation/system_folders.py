"""The folders of surrogates and origins that are evaluated: what made them, and what is written into them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ctxsim_hf.encoder.thresholds import Thresholds
from ctxsim_hf.evaluation.label_free import ADJACENT
from ctxsim_hf.evaluation.results import Answers, SystemResult
from ctxsim_hf.evaluation.systems import System
from ctxsim_hf.runtime.files import digest_file
from ctxsim_hf.runtime.record import STAGE_FILE, read_stage


def has_folder(system: System) -> bool:
    """Return whether a system has a folder to write into: one that is no part of another, such as an origin's copy."""
    if system.kind not in ("surrogate", "origin") or not Path(system.where).is_dir():
        return False
    return not any((place / STAGE_FILE).exists() for place in Path(system.where).resolve().parents)


def stage_record(system: System) -> dict[str, Any]:
    """Return the stage.json of a system's folder; empty where there is none."""
    folder = Path(system.located())
    return read_stage(folder) if system.where and (folder / STAGE_FILE).exists() else {}


def stage_digest(system: System) -> str | None:
    """Return the digest by which a folder finds its own figures wherever it is moved; None without stage.json."""
    path = Path(system.located()) / STAGE_FILE
    return digest_file(path) if system.where and path.exists() else None


def save_thresholds(seeds: Sequence[System], answers: Sequence[Answers], result: SystemResult) -> None:
    """Write what the scores of a system mean into the folder of each of its seeds."""
    (adjacent,) = (task for task in result.tasks if task.task == ADJACENT)
    for seed, answered, scores in zip(seeds, answers, adjacent.scores, strict=True):
        if has_folder(seed):
            near, far = np.split(scores, 2)
            Thresholds.from_scores(far, near, answered.settings).save(seed.where)
