"""Chunk, index and harvest on a Ray cluster: change the constants and run it on the head node.

    pip install -c constraints.txt '.[cluster]' ray
    python examples/ray_cluster.py

Run it again after an interruption: finished blocks are kept. A task whose worker dies is run again by datatrove.
SHARED must be on a file system that all nodes see. HF_HOME must be too, since the tokens are cached there.
"""

import os

import ray

import ctxsim_hf
from ctxsim_hf.runtime.datatrove_executor import DatatroveExecutor

ADDRESS = os.environ.get("RAY_ADDRESS", "auto")  # "local" starts a cluster on this machine
SHARED = os.environ.get("SHARED", "/shared/ctxsim")
CORPUS = os.environ.get("CORPUS", "s3://bucket/texts")  # or a folder in SHARED, gs://..., hf://datasets/...
GENERATOR = os.environ.get("GENERATOR", f"{SHARED}/generator")  # made by ctxsim train generator, on one machine
PAIRS = int(os.environ.get("PAIRS", 1_000_000))


def on_ray(tasks: int) -> DatatroveExecutor:
    """Return an executor of so many tasks, each on one core; workers=N limits how many run at a time."""
    from datatrove.executor import RayPipelineExecutor

    return DatatroveExecutor(RayPipelineExecutor, tasks=tasks, cpus_per_task=1, mem_per_cpu_gb=4)


def main() -> None:
    """Run the stages one after another. Each returns when its folder is finished."""
    ray.init(address=ADDRESS, runtime_env={"env_vars": {"OMP_NUM_THREADS": "1"}})
    tasks = int(os.environ.get("TASKS", 100))
    chunks, origin, pairs = (f"{SHARED}/{name}" for name in ("chunks", "origin", "pairs"))
    print(ctxsim_hf.chunk(CORPUS, output=chunks, executor=on_ray(tasks)))
    print(ctxsim_hf.build_index(chunks, output=origin, generator=GENERATOR, executor=on_ray(tasks)))
    print(ctxsim_hf.harvest(origin, pairs=PAIRS, mode="group", output=pairs, executor=on_ray(tasks)))


if __name__ == "__main__":
    main()
