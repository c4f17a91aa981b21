"""Blocks run by any executor leave the same; a finished one is not run again; what goes wrong in a worker is said."""

import copy
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from made_up import make_text
from toy_blocks import Squares

from ctxsim_hf.runtime.blocks import Blocks, LocalExecutor, RankExecutor, execute, merge_finished, run_missing
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.chunking import ChunkArguments, ChunkBlocks, run

Run = Callable[..., tuple[int, str, str]]


def opened(folder: Path) -> list[str]:
    return [path.read_text() for path in folder.glob("opened-*")]


def backwards_in_threads(work: Blocks, names: Sequence[str]) -> None:
    """An executor from outside the package."""
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda name: copy.copy(work).run_block(name), reversed(names)))


@pytest.mark.parametrize("workers", [1, 2])
def test_processes_of_this_machine(tmp_path: Path, workers: int) -> None:
    assert execute(Squares(tmp_path), LocalExecutor(workers)) == 55
    assert 1 <= len(opened(tmp_path)) <= workers and set(opened(tmp_path)) == {"x"}, "opened more than once a process"
    (tmp_path / "3.txt").unlink()
    assert execute(Squares(tmp_path), LocalExecutor(workers)) == 55, "only the missing block was run, or it had failed"


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_arrives_as_what_it_was(tmp_path: Path, workers: int) -> None:
    with pytest.raises(UserError, match=r"^4\.txt is refused$"):
        execute(Squares(tmp_path, refused="4.txt"), LocalExecutor(workers))
    assert all((tmp_path / f"{number}.txt").exists() for number in range(4)), "what was finished is kept"
    assert execute(Squares(tmp_path), LocalExecutor()) == 55


def test_a_killed_worker_is_said_and_the_rest_goes_on(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"one of 2 worker processes was killed.*run the same command again"):
        execute(Squares(tmp_path, killed="3.txt"), LocalExecutor(2))
    assert not (tmp_path / "3.txt").exists()
    assert execute(Squares(tmp_path), LocalExecutor()) == 55


def test_ranks_in_any_order_run_every_block_once(tmp_path: Path) -> None:
    for rank in (2, 0):
        run_missing(Squares(tmp_path, number=7), RankExecutor(rank, 3))
    with pytest.raises(UserError, match=r"expected 7 finished blocks, but 2 are missing: 2\.txt, 3\.txt\."):
        merge_finished(Squares(tmp_path, number=7))
    run_missing(Squares(tmp_path, number=7), RankExecutor(1, 3))
    assert merge_finished(Squares(tmp_path, number=7)) == 91


def test_an_executor_that_runs_nothing_is_found_out(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"but 6 are missing: 0\.txt, 1\.txt, 2\.txt, \.\.\.\."):
        execute(Squares(tmp_path), lambda work, names: None)


def test_a_copy_leaves_behind_what_was_opened(tmp_path: Path) -> None:
    work = Squares(tmp_path)
    assert work.opened and copy.copy(work) == work
    assert "opened" in vars(work) and "opened" not in vars(copy.copy(work))


@pytest.fixture
def arguments(tmp_path: Path) -> ChunkArguments:
    texts = [make_text(5 + i % 20, i) for i in range(50)]
    lines = [json.dumps({"id": i, "text": text}) for i, text in enumerate(texts + texts[:10])]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    (tmp_path / "long.txt").write_text("\n\n".join(make_text(9, 100 + i) for i in range(40)))
    corpus = [str(tmp_path / name) for name in ("rows.jsonl", "long.txt")]
    return ChunkArguments(corpus=corpus, output="", max_document_chars=3000, shard_chars=8000)


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "stage.log")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_chunking_by_an_executor_from_outside(arguments: ChunkArguments, tmp_path: Path) -> None:
    arguments.output = str(tmp_path / "here")
    here = run(arguments)
    arguments.output = str(tmp_path / "outside")
    assert run(arguments, backwards_in_threads) == here and here["documents_duplicate"] == 10
    assert contents(tmp_path / "here") == contents(tmp_path / "outside")
    assert len(contents(tmp_path / "here")) > 6


def test_the_plan_of_chunking_is_made_once(arguments: ChunkArguments, tmp_path: Path) -> None:
    names = ChunkBlocks(tmp_path / "work", arguments).blocks()
    made = (tmp_path / "work/plan.arrow").stat().st_mtime_ns
    again = ChunkBlocks(tmp_path / "work", arguments)
    assert again.blocks() == names
    again.run_block(names[-1])
    assert (tmp_path / "work/plan.arrow").stat().st_mtime_ns == made
    (tmp_path / "work/.plan.arrow.123.ctxsim-tmp").write_text("by a process that was killed")
    execute(again, LocalExecutor())
    assert sorted(contents(tmp_path / "work")) == names, "nothing of the plan is left"


def test_a_corpus_that_changes_between_the_readings_is_refused(arguments: ChunkArguments, tmp_path: Path) -> None:
    work = ChunkBlocks(tmp_path / "work", arguments)
    work.blocks()
    (tmp_path / "long.txt").write_text("Now it is short.")
    with pytest.raises(UserError, match="the corpus changed while it was read"):
        execute(work, LocalExecutor())
