"""Stages on Ray, on a cluster of two workers that this module starts: the bytes of a local run, with one killed."""

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from small_harvest import contents
from stages import STAGES, harvest

from ctxsim_hf.runtime.datatrove_executor import DatatroveExecutor

ray = pytest.importorskip("ray", reason="needs the extra test-cluster")
pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")  # at Ray's own 15, workers starve on a machine with other work
        ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100 * 2**20)
        yield
        ray.shutdown()


@pytest.fixture
def executor(cluster: None) -> DatatroveExecutor:
    from datatrove.executor import RayPipelineExecutor

    return DatatroveExecutor(RayPipelineExecutor, tasks=4, workers=2, mem_per_cpu_gb=0.5)


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_leaves_the_bytes_of_a_local_run(
    stage: str, start: Path, here: Path, tmp_path: Path, executor: DatatroveExecutor
) -> None:
    STAGES[stage](start, tmp_path / stage, executor)
    assert contents(tmp_path / stage) == contents(here / stage)


def test_the_task_of_a_killed_worker_runs_again(
    start: Path, here: Path, tmp_path: Path, executor: DatatroveExecutor
) -> None:
    killed: list[int] = []
    killer = threading.Thread(target=kill_worker, args=(killed,))
    killer.start()
    harvest(start, tmp_path / "out", executor)
    killer.join()
    assert killed, "no worker was killed"
    assert contents(tmp_path / "out") == contents(here / "harvest")


def kill_worker(killed: list[int]) -> None:
    """Kill the first worker that runs a task, and the process that it started for it."""
    for _ in range(1200):
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.cmdline()[:1] == ["ray::RankWorker.run_for_rank"] and process.children():
                    for victim in (process, *process.children(recursive=True)):
                        killed.append(victim.pid)
                        victim.kill()
                    return
        time.sleep(0.05)
