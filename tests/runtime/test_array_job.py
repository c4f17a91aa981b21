"""The same command in each task of a Slurm job array: every task makes its share, the last completes the folder."""

from collections.abc import Callable
from pathlib import Path

import pytest
from made_up import make_text
from small_harvest import contents
from tiny_language_model import index_tiny_llama

from ctxsim_hf.runtime.array_job import array_rank
from ctxsim_hf.runtime.blocks import RankExecutor
from ctxsim_hf.runtime.errors import UserError

Run = Callable[..., tuple[int, str, str]]


def task(number: int, count: int, first: int = 0, step: int = 1) -> dict[str, str]:
    values = {"ID": number, "COUNT": count, "MIN": first, "STEP": step}
    return {f"SLURM_ARRAY_TASK_{name}": str(value) for name, value in values.items()}


def test_the_rank_of_a_task() -> None:
    assert array_rank(task(2, 5)) == RankExecutor(2, 5)
    assert array_rank(task(7, 3, first=3, step=2)) == RankExecutor(2, 3), "sbatch --array=3-7:2"
    with pytest.raises(UserError, match="needs SLURM_ARRAY_TASK_ID"):
        array_rank({})


def test_tasks_in_any_order_leave_the_same_bytes(ctxsim: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "long.txt").write_text("\n\n".join(make_text(9, 100 + i) for i in range(60)))
    words = ("chunk", "--corpus", tmp_path / "long.txt", "--max-document-chars", 3000, "--shard-chars", 8000)
    assert ctxsim(*words, "--output", tmp_path / "whole")[0] == 0
    printed = []
    for number in (2, 0, 1):
        for name, value in task(number, 3).items():
            monkeypatch.setenv(name, value)
        code, out, err = ctxsim(*words, "--output", tmp_path / "out", "--array")
        assert code == 0, err
        printed.append(out)
    assert printed[0].startswith("task 2 of 3 is finished; ") and "are still to come" in printed[1]
    assert "is finished" in printed[2] and "still to come" not in printed[2]
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    assert ctxsim(*words, "--output", tmp_path / "out", "--array")[0] == 0, "a task that is requeued too late"
    code, _, err = ctxsim(*words, "--output", tmp_path / "out", "--array", "--overwrite")
    assert code == 2 and "a task of an array cannot tell" in err


def test_vectors_by_tasks_are_those_of_one_process(
    ctxsim: Run, planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = index_tiny_llama(planted / "chunks", tmp_path)
    sizes = ("--sentences", 200, "--sentences-per-file", 60, "--max-tokens", 200)
    words = ("harvest-vectors", "--origin", origin, *sizes)
    assert ctxsim(*words, "--output", tmp_path / "whole")[0] == 0
    printed = []
    for number in (1, 0):
        for name, value in task(number, 2).items():
            monkeypatch.setenv(name, value)
        code, out, err = ctxsim(*words, "--output", tmp_path / "out", "--array")
        assert code == 0, err
        printed.append(out)
    assert printed[0].startswith("task 1 of 2 is finished; 2 of 5 blocks are still to come")
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    assert not (tmp_path / "whole/plan.npz").exists()
