"""Chunk, index and harvest on a Slurm cluster, from its login node: change the constants and run it in a tmux session.

    pip install -c constraints.txt '.[cluster]'
    python examples/slurm.py

Run it again after an interruption: it waits for jobs that are still in the queue, and submits the tasks that failed.
SHARED must be on a file system that all nodes see. HF_HOME must be too, since the tokens are cached there.
"""

import os

import ctxsim_hf
from ctxsim_hf.runtime.datatrove_executor import DatatroveExecutor

SHARED = os.environ.get("SHARED", "/shared/ctxsim")
CORPUS = os.environ.get("CORPUS", "s3://bucket/texts")  # or a folder in SHARED, gs://..., hf://datasets/...
GENERATOR = os.environ.get("GENERATOR", f"{SHARED}/generator")  # made by ctxsim train generator, on one machine
PAIRS = int(os.environ.get("PAIRS", 1_000_000))

CPU = {"partition": os.environ.get("PARTITION", "cpu"), "time": "04:00:00", "mem_per_cpu_gb": 4, "qos": ""}
# What each task runs before its work: one thread a task, and the environment that ctxsim_hf is installed in.
CPU["env_command"] = os.environ.get("ENV_COMMAND", f"export OMP_NUM_THREADS=1; source {SHARED}/.venv/bin/activate")
CPU["sbatch_args"] = {"kill-on-invalid-dep": "yes"}  # after a failure, leave no job in the queue


def on_slurm(tasks: int) -> DatatroveExecutor:
    """Return an executor of so many tasks; for the largest jobs add workers=N, the number to run at a time."""
    from datatrove.executor import SlurmPipelineExecutor

    return DatatroveExecutor(SlurmPipelineExecutor, tasks=tasks, **CPU)


def main() -> None:
    """Run the stages one after another. Each returns when its folder is finished."""
    tasks = int(os.environ.get("TASKS", 100))
    chunks, origin, pairs = (f"{SHARED}/{name}" for name in ("chunks", "origin", "pairs"))
    print(ctxsim_hf.chunk(CORPUS, output=chunks, executor=on_slurm(tasks)))
    print(ctxsim_hf.build_index(chunks, output=origin, generator=GENERATOR, executor=on_slurm(tasks)))
    print(ctxsim_hf.harvest(origin, pairs=PAIRS, mode="group", output=pairs, executor=on_slurm(tasks)))


if __name__ == "__main__":
    main()
