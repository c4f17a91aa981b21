"""Blocks on datatrove's local executor, by ranks, with its markers; the same adapter serves Slurm and Ray."""

import json
from pathlib import Path

import pytest
from made_up import make_text
from small_harvest import contents
from tiny_language_model import index_tiny_llama
from toy_blocks import Squares

import ctxsim_hf
from ctxsim_hf.runtime.blocks import execute
from ctxsim_hf.runtime.errors import UserError

datatrove = pytest.importorskip("datatrove.executor", reason="needs the extra cluster")


def local(tasks: int, workers: int = 1) -> "ctxsim_hf.runtime.blocks.Executor":
    from ctxsim_hf.runtime.datatrove_executor import DatatroveExecutor

    return DatatroveExecutor(datatrove.LocalPipelineExecutor, tasks=tasks, workers=workers)


def markers(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder.with_name(f"{folder.name}.datatrove") / "completions").glob("*"))


def test_every_rank_leaves_a_marker(tmp_path: Path) -> None:
    folder = tmp_path / "squares"
    folder.mkdir()
    assert execute(Squares(folder), local(tasks=4)) == 55
    assert markers(folder) == ["00000", "00001", "00002", "00003"]
    assert json.loads((tmp_path / "squares.datatrove/stats/00003.json").read_text())[0]["stats"]["blocks"] == 2


@pytest.mark.parametrize("inside", ["output", "output/segments/one", "segments/one"])
def test_logs_are_beside_the_output_and_never_in_it(tmp_path: Path, inside: str) -> None:
    folder = tmp_path / "origin.ctxsim-partial" / inside
    folder.mkdir(parents=True)
    assert execute(Squares(folder), local(tasks=2)) == 55
    assert markers(tmp_path / "origin") == ["00000", "00001"]
    assert sorted(path.name for path in folder.parent.iterdir()) == [folder.name]


def test_no_more_tasks_than_blocks(tmp_path: Path) -> None:
    folder = tmp_path / "squares"
    folder.mkdir()
    assert execute(Squares(folder, number=2), local(tasks=4)) == 1
    assert len(markers(folder)) == 2


def test_a_lost_block_is_made_again_whatever_its_marker_says(tmp_path: Path) -> None:
    folder = tmp_path / "squares"
    folder.mkdir()
    execute(Squares(folder), local(tasks=3))
    (folder / "3.txt").unlink()
    assert execute(Squares(folder), local(tasks=3)) == 55
    (folder / "0.txt").unlink()
    assert execute(Squares(folder), local(tasks=2)) == 55, "the markers of three ranks mean nothing to two"


def test_a_rank_that_fails_keeps_what_it_made(tmp_path: Path) -> None:
    folder = tmp_path / "squares"
    folder.mkdir()
    with pytest.raises(UserError, match=r"^4\.txt is refused$"):
        execute(Squares(folder, refused="4.txt"), local(tasks=2))
    assert markers(folder) == ["00000"] and (folder / "3.txt").exists()
    assert execute(Squares(folder), local(tasks=2)) == 55


def test_chunks_by_two_workers_are_those_of_one_process(tmp_path: Path) -> None:
    texts = [make_text(5 + i % 20, i) for i in range(30)]
    lines = [json.dumps({"id": i, "text": text}) for i, text in enumerate(texts + texts[:5])]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    here = ctxsim_hf.chunk(tmp_path / "rows.jsonl", output=tmp_path / "here", shard_chars=8000)
    there = ctxsim_hf.chunk(
        tmp_path / "rows.jsonl", output=tmp_path / "there", shard_chars=8000, executor=local(tasks=3, workers=2)
    )
    assert here == there and here["documents_duplicate"] == 5
    assert contents(tmp_path / "here") == contents(tmp_path / "there")
    assert len(markers(tmp_path / "there")) == 3


def test_vectors_by_three_tasks_are_those_of_one_process(planted: Path, tmp_path: Path) -> None:
    origin = index_tiny_llama(planted / "chunks", tmp_path)
    sizes = {"sentences": 200, "sentences_per_file": 60, "max_tokens": 200}
    here = ctxsim_hf.harvest_vectors(origin, output=tmp_path / "here", **sizes)
    there = ctxsim_hf.harvest_vectors(origin, output=tmp_path / "there", **sizes, executor=local(tasks=3))
    assert here == there and here["sentences"] == {"train": 200, "validation": 20}
    assert contents(tmp_path / "here") == contents(tmp_path / "there")
    assert markers(tmp_path / "there") == ["00000", "00001", "00002"]
