"""`ctxsim sample`: shares inside each other, held-out documents whole, a folder of chunks like any other."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from made_up import make_text
from unfinished import unfinished

from ctxsim_hf import read_chunks
from ctxsim_hf.runtime.record import read_stage
from ctxsim_hf.text.sampling import is_sampled
from ctxsim_hf.text.tokenized import tokenize_chunks

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def chunks(ctxsim: Run, tmp_path: Path) -> Path:
    rows = [{"id": i, "text": make_text(5 + i % 30, i), "title": f"Title {i}"} for i in range(120)]
    (tmp_path / "made_up.jsonl").write_text("\n".join(map(json.dumps, rows)))
    words = ("--held-out", 0.2, "--keep-columns", "title", "--shard-chars", 20_000)
    assert ctxsim("chunk", "--corpus", tmp_path / "made_up.jsonl", *words, "--output", tmp_path / "chunks")[0] == 0
    assert len(list((tmp_path / "chunks/data").iterdir())) > 2
    return tmp_path / "chunks"


def sample(ctxsim: Run, chunks: Path, share: float, output: Path) -> Path:
    code, _, err = ctxsim("sample", "--chunks", chunks, "--share", share, "--output", output)
    assert code == 0, err
    return output


def test_shares_lie_inside_each_other_and_held_out_documents_stay(ctxsim: Run, chunks: Path, tmp_path: Path) -> None:
    everything = list(read_chunks(chunks))
    found: list[set[str]] = []
    for share in (0.1, 0.4, 1.0):
        folder = sample(ctxsim, chunks, share, tmp_path / f"share-{share}")
        rows = list(read_chunks(folder))
        # Whole documents, as they were and in order.
        documents = {row["doc_id"] for row in rows}
        assert rows == [row for row in everything if row["doc_id"] in documents]
        assert [row for row in rows if row["split"] == "held_out"] == [
            row for row in everything if row["split"] == "held_out"
        ]
        counts = read_stage(folder)["counts"]
        for split in ("train", "held_out"):
            kept = [row for row in rows if row["split"] == split]
            assert counts["chunks"][split] == len(kept) == len(read_chunks(folder, split))
            assert counts["sentences"][split] == sum(len(row["sentences"]) for row in kept)
            assert counts["documents"][split] == len({row["doc_id"] for row in kept})
        found.append({row["doc_id"] for row in rows if row["split"] == "train"})
    few, some, all_of_them = found
    assert few < some < all_of_them == {row["doc_id"] for row in everything if row["split"] == "train"}


def test_a_share_is_about_that_share() -> None:
    for share in (0.02, 0.25, 0.9):
        number = sum(is_sampled(f"corpus/{i}", share) for i in range(10_000))
        assert abs(number / 10_000 - share) < 4 * (share * (1 - share) / 10_000) ** 0.5


def test_what_reads_chunks_reads_a_share(ctxsim: Run, chunks: Path, tmp_path: Path) -> None:
    folder = sample(ctxsim, chunks, 0.5, tmp_path / "half")
    words = ("--vocab-size", 500, "--lowercase", "--output", tmp_path / "tokenizer")
    assert ctxsim("train-tokenizer", "--chunks", folder, *words)[0] == 0
    sentences = read_stage(folder)["counts"]["sentences"]
    for split, number in sentences.items():
        assert len(tokenize_chunks(folder, tmp_path / "tokenizer", split)) == number
    again = sample(ctxsim, folder, 0.25, tmp_path / "quarter")  # of all documents, since shares lie inside each other
    at_once = sample(ctxsim, chunks, 0.25, tmp_path / "at-once")
    assert list(read_chunks(again)) == list(read_chunks(at_once))


def test_interrupted_it_goes_on_and_leaves_the_same_bytes(ctxsim: Run, chunks: Path, tmp_path: Path) -> None:
    whole = sample(ctxsim, chunks, 0.5, tmp_path / "whole")
    broken = sample(ctxsim, chunks, 0.5, tmp_path / "broken")
    shards = sorted((broken / "data").iterdir())
    times = shards[0].stat().st_mtime_ns
    # As if it had been killed before the last shard.
    shards[-1].unlink()
    record = json.loads((broken / "stage.json").read_text())
    recipe = {key: record[key] for key in ("command", "arguments", "inputs", "versions")}
    (broken / "stage.json").write_text(json.dumps(recipe))
    broken.rename(unfinished(broken))
    sample(ctxsim, chunks, 0.5, broken)
    assert shards[0].stat().st_mtime_ns == times
    for path in sorted(whole.rglob("*.*")):
        if path.name != "stage.log":
            assert path.read_bytes() == (broken / path.relative_to(whole)).read_bytes()
    assert pq.read_schema(shards[0]).names[-1] == "title"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--share", "0"), "--share must be above 0 and at most 1, got 0.0"),
        (("--share", "1.5"), "--share must be above 0 and at most 1, got 1.5"),
        (("--share", "1e-9"), "--share 1e-09 leaves no training document; choose a larger share"),
        (("--share", "0.5", "--chunks", "nowhere"), "expected a folder made by `ctxsim chunk`, but 'nowhere'"),
    ],
)
def test_what_is_refused(ctxsim: Run, chunks: Path, tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    code, _, err = ctxsim("sample", "--chunks", chunks, "--output", tmp_path / "out", *words)
    assert code == 2 and message in err
