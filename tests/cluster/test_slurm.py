"""Stages as Slurm jobs, on a cluster of one node that this module starts and stops: the bytes of a local run."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from small_harvest import contents
from small_slurm import PARTITION, missing_reason, small_slurm
from stages import STAGES, harvest

from ctxsim_hf.runtime import datatrove_executor
from ctxsim_hf.runtime.datatrove_executor import DatatroveExecutor
from ctxsim_hf.runtime.errors import UserError

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(missing_reason() is not None, reason=missing_reason() or ""),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with small_slurm(tmp_path_factory.mktemp("slurm"), tasks=2) as environment, pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}")
        patch.setattr(datatrove_executor, "SECONDS_BETWEEN_LOOKS", 0.5)
        yield


@pytest.fixture
def executor(cluster: None) -> DatatroveExecutor:
    from datatrove.executor import SlurmPipelineExecutor

    # A failed job must not leave behind the job that would add up its statistics.
    settings = {"partition": PARTITION, "time": "00:10:00", "mem_per_cpu_gb": 1, "qos": ""}
    return DatatroveExecutor(SlurmPipelineExecutor, tasks=2, sbatch_args={"kill-on-invalid-dep": "yes"}, **settings)


def completed(output: Path) -> list[str]:
    return sorted(path.name for path in output.with_suffix(".datatrove").glob("completions/*"))


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_leaves_the_bytes_of_a_local_run(
    stage: str, start: Path, here: Path, tmp_path: Path, executor: DatatroveExecutor
) -> None:
    STAGES[stage](start, tmp_path / stage, executor)
    assert contents(tmp_path / stage) == contents(here / stage)
    assert completed(tmp_path / stage), "no task ran"


def test_a_killed_task_is_submitted_again(
    start: Path, here: Path, tmp_path: Path, executor: DatatroveExecutor
) -> None:
    killer = threading.Thread(target=kill_task, args=(1, tmp_path / "out.datatrove"))
    killer.start()
    with pytest.raises(UserError, match=r"expected \d+ finished blocks, but \d are missing.*same command again"):
        harvest(start, tmp_path / "out", executor)
    killer.join()
    assert completed(tmp_path / "out") == ["00000"]
    harvest(start, tmp_path / "out", executor)
    assert completed(tmp_path / "out") == ["00000", "00001"]
    assert contents(tmp_path / "out") == contents(here / "harvest")


def kill_task(number: int, logs: Path) -> None:
    """Kill a task of the array while it works."""
    started = logs / f"logs/task_{number:05d}.log"
    for _ in range(1200):
        for process in psutil.process_iter(["cmdline"]) if started.exists() else ():
            words = process.info["cmdline"] or [""]
            is_task = "python" in words[0] and str(logs / "executor.pik") in words
            if is_task and process.environ().get("SLURM_ARRAY_TASK_ID") == str(number):
                process.kill()
                return
        time.sleep(0.1)


def test_an_array_by_hand(start: Path, here: Path, tmp_path: Path, cluster: None) -> None:
    command = f"{sys.executable} -m ctxsim_hf chunk --corpus {start}/texts.jsonl --shard-chars 50000 --array"
    flags = ["--wait", "--array=1-3", "--mem=500M", f"--output={tmp_path}/%a.log"]
    subprocess.run(["sbatch", *flags, f"--wrap={command} --output {tmp_path}/out"], check=True)
    assert contents(tmp_path / "out") == contents(here / "chunk")
    logs = [(tmp_path / f"{number}.log").read_text() for number in (1, 2, 3)]
    assert sum("still to come" in log for log in logs) < 3
