"""Run a stage in the tasks of a Slurm job array, each of which is the same command: `ctxsim chunk ... --array`."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ctxsim_hf.runtime.blocks import Blocks, RankExecutor, merge_finished, missing_blocks, run_missing
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import many_writers
from ctxsim_hf.runtime.record import read_counts
from ctxsim_hf.runtime.stage import Stage


def array_rank(environment: Mapping[str, str] = os.environ) -> RankExecutor:
    """Return the executor of this task, by the variables that Slurm sets in each task of an array."""
    try:
        task, first, step, count = (
            int(environment.get(f"SLURM_ARRAY_TASK_{name}", default))
            for name, default in (("ID", ""), ("MIN", "0"), ("STEP", "1"), ("COUNT", ""))
        )
    except ValueError:
        raise UserError(
            "--array needs SLURM_ARRAY_TASK_ID and SLURM_ARRAY_TASK_COUNT; submit the command with sbatch --array=0-N"
        ) from None
    return RankExecutor((task - first) // step, count)


def run_as_rank(stage: Stage, make_work: Callable[[Path], Blocks], executor: RankExecutor) -> dict[str, Any] | str:
    """Run the blocks of one rank. The rank that finds all blocks finished completes the folder.

    Args:
        stage (`Stage`): The stage, which waits for other ranks while they prepare or complete the folder.
        make_work (`Callable[[Path], Blocks]`): Makes the work in the stage's folder.
        executor (`RankExecutor`): Runs the blocks of this rank.
    """
    if stage.overwrite and stage.output.exists():
        raise UserError(
            f"{str(stage.output)!r} exists, and a task of an array cannot tell whether it is the old one or what the "
            "other tasks made; remove it, or run without --overwrite or without --array"
        )
    with stage:
        if not stage.finished:
            work = make_work(stage.folder)
            work.blocks()  # plans them while the other ranks wait, so that they find the plan
    if not stage.finished:
        with many_writers():
            run_missing(work, executor)
        with stage:
            # Another rank may have completed the folder meanwhile.
            missing = [] if stage.finished else missing_blocks(work)
            if missing:
                place = f"task {executor.rank} of {executor.world_size}"
                return f"{place} is finished; {len(missing)} of {len(work.blocks())} blocks are still to come"
            if not stage.finished:
                stage.finish(merge_finished(work))
    return read_counts(stage.output)
