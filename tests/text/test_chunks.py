"""Contexts by hand, even chunks by hand."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ctxsim_hf import Chunk, Context, read_chunks
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.chunks import context_positions, even_chunks


def test_the_contexts_of_a_chunk() -> None:
    chunk = Chunk("d#0", "d", "s", "train", ("a", "b", "c", "d"))
    assert list(chunk.contexts(width=2)) == [
        Context("d#0", 1, ("a",), "b", ("c", "d")),
        Context("d#0", 2, ("a", "b"), "c", ("d",)),
    ]
    assert list(chunk.contexts(width=1))[1] == Context("d#0", 2, ("b",), "c", ("d",))


def test_short_chunks_have_no_context() -> None:
    assert [len(list(context_positions(n))) for n in range(6)] == [0, 0, 0, 1, 2, 3]


def test_chunks_are_even() -> None:
    def sizes(number: int) -> list[int]:
        return [len(chunk) for chunk in even_chunks(["s"] * number, 10)]

    assert sizes(0) == []
    assert sizes(10) == [10]
    assert sizes(11) == [5, 6]
    assert sizes(25) == [8, 8, 9]
    assert [sentence for chunk in even_chunks([str(i) for i in range(25)], 10) for sentence in chunk] == [
        str(i) for i in range(25)
    ]


def test_a_split_without_chunks_is_refused(ctxsim: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One came. Two left. Three stayed. Four slept.")
    flags = ("--corpus", tmp_path / "a.txt", "--held-out", "0", "--output", tmp_path / "chunks")
    assert ctxsim("chunk", *flags)[0] == 0
    assert len(read_chunks(tmp_path / "chunks", "train")) == 1
    with pytest.raises(UserError, match="has no held_out chunks"):
        read_chunks(tmp_path / "chunks", "held_out")


def test_damaged_chunks_are_refused(ctxsim: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One came. Two left. Three stayed. Four slept.")
    chunks = tmp_path / "chunks"
    assert ctxsim("chunk", "--corpus", tmp_path / "a.txt", "--held-out", "0", "--output", chunks)[0] == 0
    path = chunks / "data/chunks-00000.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
    words = ("train-tokenizer", "--chunks", chunks, "--vocab-size", "600", "--output", tmp_path / "tokenizer")
    code, _, err = ctxsim(*words)
    assert code == 2 and err.count("\n") == 1 and "chunks-00000.parquet' is damaged: its content changed" in err
    with pytest.raises(UserError, match="is damaged"):
        read_chunks(chunks)
    path.write_bytes(whole)
    assert len(read_chunks(chunks)) == 1
    path.with_name("chunks-00001.parquet").write_bytes(whole)
    with pytest.raises(UserError, match=r"chunks-00001.parquet' was not written by the command"):
        read_chunks(chunks)


def test_a_cache_that_cannot_be_written_is_done_without(
    ctxsim: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("One came. Two left. Three stayed. Four slept.")
    chunks = tmp_path / "chunks"
    assert ctxsim("chunk", "--corpus", tmp_path / "a.txt", "--held-out", "0", "--output", chunks)[0] == 0
    environment = os.environ | {"HF_HOME": "/proc/home"}  # where even root may not write
    code = "import sys; from ctxsim_hf.cli import main; sys.exit(main(['contexts', '--chunks', sys.argv[1]]))"
    result = subprocess.run([sys.executable, "-c", code, chunks], env=environment, capture_output=True, text=True)
    assert result.returncode == 0 and "Two left." in result.stdout, result.stderr
