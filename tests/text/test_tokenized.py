"""Tokenising in blocks: the tokens of every sentence, the same bytes for any executor, and after an interruption."""

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from made_up import make_text
from transformers import AutoTokenizer

from ctxsim_hf.runtime.blocks import Blocks, Executor, LocalExecutor, execute
from ctxsim_hf.text.chunks import read_chunks
from ctxsim_hf.text.token_blocks import TokenBlocks
from ctxsim_hf.text.tokenized import ARRAYS, tokenize_chunks

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def folder(ctxsim: Run, tmp_path: Path) -> Path:
    """A folder with several shards of chunks, of which some have no held-out document, and a tokenizer."""
    rows = [{"id": i, "text": make_text(5 + i % 30, i)} for i in range(100)]
    (tmp_path / "made_up.jsonl").write_text("\n".join(map(json.dumps, rows)))
    words = ("--held-out", 0.05, "--shard-chars", 10_000, "--output", tmp_path / "chunks")
    assert ctxsim("chunk", "--corpus", tmp_path / "made_up.jsonl", *words)[0] == 0
    words = ("--chunks", tmp_path / "chunks", "--vocab-size", 500, "--output", tmp_path / "tokenizer")
    assert ctxsim("train-tokenizer", *words)[0] == 0
    return tmp_path


def arrays_by(executor: Executor, folder: Path, output: str) -> dict[str, bytes]:
    (folder / output).mkdir(exist_ok=True)
    work = TokenBlocks(folder / f"{output}.blocks", folder / output, folder / "chunks", folder / "tokenizer", "train")
    execute(work, executor)
    assert not work.folder.exists()
    return {path.name: path.read_bytes() for path in (folder / output).iterdir()}


@pytest.mark.parametrize("split", ["train", "held_out"])
def test_the_tokens_of_every_sentence(folder: Path, split: str) -> None:
    found = tokenize_chunks(folder / "chunks", folder / "tokenizer", split)
    rows = list(read_chunks(folder / "chunks", split))
    sentences = [sentence for row in rows for sentence in row["sentences"]]
    expected = AutoTokenizer.from_pretrained(folder / "tokenizer")(sentences, add_special_tokens=False)["input_ids"]
    assert found.tokens.dtype == np.uint16
    assert [found.tokens[a:b].tolist() for a, b in pairwise(found.sentence_starts)] == expected
    assert np.diff(found.chunk_starts).tolist() == [len(row["sentences"]) for row in rows]
    documents: dict[str, int] = {}
    for row in rows:
        documents[row["doc_id"]] = documents.get(row["doc_id"], 0) + len(row["sentences"])
    assert np.diff(found.document_starts).tolist() == list(documents.values())


def test_the_same_bytes_for_any_number_of_workers(folder: Path) -> None:
    one = arrays_by(LocalExecutor(1), folder, "one")
    assert set(one) == {f"{name}.npy" for name in ARRAYS}
    assert arrays_by(LocalExecutor(2), folder, "two") == one


def test_interrupted_it_goes_on(folder: Path) -> None:
    undisturbed = arrays_by(LocalExecutor(1), folder, "undisturbed")
    work = TokenBlocks(folder / "out.blocks", folder / "out", folder / "chunks", folder / "tokenizer", "train")
    work.run_block(work.blocks()[0])
    (work.folder / ".chunks-00001.npz.ctxsim-tmp").write_bytes(b"half of a block")

    def others(work: Blocks, names: Sequence[str]) -> None:
        assert names == work.blocks()[1:]
        LocalExecutor()(work, names)

    assert arrays_by(others, folder, "out") == undisturbed
