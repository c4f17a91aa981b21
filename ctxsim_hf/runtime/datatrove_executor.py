"""Run the blocks of a stage on datatrove's executors: on this machine, on Slurm or on Ray (extra `cluster`).

    from datatrove.executor import SlurmPipelineExecutor

    executor = DatatroveExecutor(SlurmPipelineExecutor, tasks=100, time="04:00:00", partition="cpu", qos="")
    ctxsim_hf.chunk("s3://bucket/texts", output="/shared/chunks", executor=executor)

A task runs consecutive blocks, those of its rank. datatrove keeps its logs and the markers of completed ranks beside
the folder that is being made, in `<output>.datatrove`. Finished blocks decide what is left to do, so a rank whose
blocks were lost runs again, whatever its marker says. All folders must be on a file system that the tasks share, also
HF_HOME, which caches tokens.
"""

import pickle
import subprocess
import time
from collections.abc import Iterator, Sequence
from typing import Any

from datatrove.executor import SlurmPipelineExecutor
from datatrove.executor.base import PipelineExecutor
from datatrove.pipeline.base import PipelineStep

from ctxsim_hf.runtime.blocks import Blocks, consecutive_share, missing_blocks, unpickle_once
from ctxsim_hf.runtime.files import many_writers
from ctxsim_hf.runtime.working import final_output, make_marked_folder

JOB_FILE = "job_id"
SECONDS_BETWEEN_LOOKS = 10.0  # at the queue of Slurm


class RunBlocks(PipelineStep):
    """A pipeline of one step, which makes the missing blocks of a rank."""

    type = "ctxsim"

    def __init__(self, work: Blocks) -> None:
        super().__init__()
        self.name = type(work).__name__
        self.pickled = pickle.dumps(work)

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> Iterator[Any]:
        """Make the blocks. No document comes in or goes out."""
        work = unpickle_once(self.pickled)
        for name in consecutive_share(work.blocks(), rank, world_size):
            if not work.is_done(name):
                with self.track_time("block"), many_writers():
                    work.run_block(name)
                self.stat_update("blocks")
        yield from ()


class DatatroveExecutor:
    """An executor for [`execute`] and for the functions of api.py.

    It returns when all tasks have ended. While it waits for a Slurm job it may be interrupted: the job goes on, and
    the same call waits for it again. Tasks that failed or were killed are submitted again by the same call.

    Args:
        executor_class (`type[PipelineExecutor]`): `LocalPipelineExecutor`, `SlurmPipelineExecutor` or
            `RayPipelineExecutor`.
        tasks (`int`): Number of tasks; fewer are started if there are fewer blocks.
        **settings: Any other argument of the class except `pipeline` and `logging_dir`.
    """

    def __init__(self, executor_class: type[PipelineExecutor], tasks: int, **settings: Any) -> None:
        self.executor_class, self.tasks, self.settings = executor_class, tasks, settings

    def __call__(self, work: Blocks, names: Sequence[str]) -> None:
        output = final_output(work.folder)
        logs = output.with_name(f"{output.name}.datatrove")
        make_marked_folder(logs)
        job_file = logs / JOB_FILE
        if issubclass(self.executor_class, SlurmPipelineExecutor) and job_file.exists():
            _wait_for_job(job_file.read_text())
            names = missing_blocks(work)
        if not names:
            return
        tasks = min(self.tasks, len(work.blocks()))
        pipeline = self.executor_class(pipeline=[RunBlocks(work)], tasks=tasks, logging_dir=str(logs), **self.settings)
        _remove_stale_markers(pipeline, work, names)
        pipeline.run()
        if isinstance(pipeline, SlurmPipelineExecutor):
            job_file.write_text(pipeline.job_id)
            _wait_for_job(pipeline.job_id)
            if missing_blocks(work):
                time.sleep(SECONDS_BETWEEN_LOOKS)  # a network file system may show new files late


def _remove_stale_markers(pipeline: PipelineExecutor, work: Blocks, names: Sequence[str]) -> None:
    """Remove the markers of ranks that have a block to make."""
    blocks, missing = work.blocks(), set(names)
    for rank in range(pipeline.world_size):
        own = consecutive_share(blocks, rank, pipeline.world_size)
        if missing.intersection(own) and pipeline.is_rank_completed(rank):
            pipeline.logging_dir.rm(f"completions/{rank:05d}")


def _wait_for_job(job_id: str) -> None:
    while _is_queued(job_id):
        time.sleep(SECONDS_BETWEEN_LOOKS)


def _is_queued(job_id: str) -> bool:
    """Return whether a task of a Slurm job is waiting or running, as far as the controller can be asked."""
    answer = subprocess.run(["squeue", "--noheader", f"--jobs={job_id}"], capture_output=True, text=True)
    return "Invalid job id" not in answer.stderr and (answer.returncode != 0 or bool(answer.stdout.strip()))
