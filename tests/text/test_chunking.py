"""`ctxsim chunk`: counts that add up, the same bytes for any number of workers and after kill -9, nothing lost."""

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from made_up import make_text
from unfinished import unfinished

from ctxsim_hf import Chunk, read_chunks
from ctxsim_hf.text.chunking import split_of

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    rows = [{"id": i, "text": make_text(5 + i % 30, i), "title": f"Title {i}"} for i in range(60)]
    path = tmp_path / "made_up.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def chunk(ctxsim: Run, corpus: Path | list[Path], output: Path, *flags: object) -> dict[str, Any]:
    corpora = corpus if isinstance(corpus, list) else [corpus]
    code, _, err = ctxsim("chunk", "--corpus", *corpora, "--output", output, *flags)
    assert code == 0, err
    record: dict[str, Any] = json.loads((output / "stage.json").read_text())
    return record["counts"]


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "stage.log")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_counts_add_up_and_every_sentence_is_there(ctxsim: Run, corpus: Path, tmp_path: Path) -> None:
    counts = chunk(ctxsim, corpus, tmp_path / "out", "--keep-columns", "title", "--held-out", "0.2")
    assert counts["documents_read"] == counts["documents_kept"] == 60
    rows = list(read_chunks(tmp_path / "out"))
    assert len(rows) == sum(counts["chunks"].values())
    assert (
        sum(len(row["sentences"]) for row in rows)
        == sum(counts["sentences"].values())
        == sum(5 + i % 30 for i in range(60))
    )
    assert sum(len(list(Chunk.from_row(row).contexts(2))) for row in rows) == counts["contexts"]
    document = [row for row in rows if row["doc_id"] == "made_up/31"]
    assert " ".join(" ".join(row["sentences"]) for row in document) == " ".join(make_text(6, 31).split())
    assert document[0]["title"] == "Title 31"
    assert document[0]["chunk_id"] == "made_up/31#0"


def test_held_out_documents_are_whole_and_fixed_by_their_id(ctxsim: Run, corpus: Path, tmp_path: Path) -> None:
    counts = chunk(ctxsim, corpus, tmp_path / "out", "--held-out", "0.2")
    train = set(read_chunks(tmp_path / "out", "train")["doc_id"])
    held_out = set(read_chunks(tmp_path / "out", "held_out")["doc_id"])
    assert not train & held_out
    assert len(held_out) == counts["documents_held_out"] and 3 <= len(held_out) <= 25
    assert all(split_of(doc_id, 0.2) == "held_out" for doc_id in held_out)
    assert 150 < sum(split_of(f"x/{i}", 0.02) == "held_out" for i in range(10_000)) < 250


def test_the_same_bytes_for_any_number_of_workers(ctxsim: Run, corpus: Path, tmp_path: Path) -> None:
    chunk(ctxsim, corpus, tmp_path / "one", "--shard-chars", 10_000)
    chunk(ctxsim, corpus, tmp_path / "three", "--shard-chars", 10_000, "--workers", 3)
    assert len(contents(tmp_path / "one")) > 4
    assert contents(tmp_path / "one") == contents(tmp_path / "three")


def test_killed_and_run_again_it_leaves_the_same_bytes(ctxsim: Run, tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    for i in range(300):
        (tmp_path / f"texts/{i:03}.txt").write_text(make_text(200, i))
    words = ["chunk", "--corpus", str(tmp_path / "texts"), "--shard-chars", "8000", "--workers", "2", "--output"]
    command = [Path(sys.executable).with_name("ctxsim"), *words]
    assert ctxsim(*words, tmp_path / "undisturbed")[0] == 0
    for shards in (1, 10):
        with subprocess.Popen([*command, str(tmp_path / "out")], start_new_session=True) as process:
            while len(list(tmp_path.glob("out.ctxsim-partial/output/data/*.parquet"))) < shards:
                assert process.poll() is None
                time.sleep(0.005)
            os.killpg(process.pid, signal.SIGKILL)
    finished = {path: path.stat().st_mtime_ns for path in tmp_path.glob("out.ctxsim-partial/output/data/*.parquet")}
    assert ctxsim(*words, tmp_path / "out")[0] == 0
    assert contents(tmp_path / "out") == contents(tmp_path / "undisturbed")
    for path, written in finished.items():
        assert (tmp_path / "out/data" / path.name).stat().st_mtime_ns == written, "a finished shard was made again"


def test_workers_end_with_a_killed_parent(tmp_path: Path) -> None:
    module = tmp_path / "slow_task.py"
    module.write_text(
        "import os, time\n\ndef work(number):\n"
        "    open(f'{os.path.dirname(__file__)}/{os.getpid()}.pid', 'w').close()\n    time.sleep(600)\n"
    )
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\nimport slow_task\n"
        "from ctxsim_hf.runtime.parallel import ordered_map\nlist(ordered_map(slow_task.work, range(4), 2))"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)]) as process:
        while len(pids := [int(path.stem) for path in tmp_path.glob("*.pid")]) < 2:
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < deadline, "workers outlived their parent"
        time.sleep(0.05)


def test_duplicates_empty_and_short_documents_are_counted(ctxsim: Run, tmp_path: Path) -> None:
    texts = {"a": make_text(9, 1), "b": " " + make_text(9, 1) + "\n", "c": " \n ", "d": "Too short. To be used."}
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_text(text)
    counts = chunk(ctxsim, [tmp_path / f"{name}.txt" for name in texts], tmp_path / "out")
    assert counts["documents_read"] == 4
    assert counts["documents_kept"] == counts["documents_duplicate"] == 1
    assert counts["documents_skipped"] == {"empty": 1, "too short": 1}
    assert counts["sentences_without_context"] == 2


def test_bad_documents_stop_the_run_or_are_counted(ctxsim: Run, corpus: Path, tmp_path: Path) -> None:
    with corpus.open("a") as file:
        file.write('\n{"id": 99}\n{broken')
    code, _, err = ctxsim("chunk", "--corpus", corpus, "--output", tmp_path / "out")
    assert code == 2 and f"{corpus}, line 61: expected a column 'text'" in err and "--skip-bad" in err
    counts = chunk(ctxsim, corpus, tmp_path / "skipped", "--skip-bad")
    assert counts["documents_read"] == 62
    assert counts["documents_skipped"] == {"no such column": 1, "not JSON": 1}


def test_a_truncated_gzip_is_named(ctxsim: Run, corpus: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(gzip.compress(corpus.read_bytes())[:-100])
    code, _, err = ctxsim("chunk", "--corpus", path, "--output", tmp_path / "out")
    assert code == 2 and "cut.jsonl.gz: expected a whole gzip file" in err


def test_one_line_of_50_megabytes_without_a_sentence_end(ctxsim: Run, tmp_path: Path) -> None:
    (tmp_path / "huge.txt").write_text("word " * 10_000_000)
    (tmp_path / "fine.txt").write_text(make_text(9, 1))
    counts = chunk(ctxsim, [tmp_path / "huge.txt", tmp_path / "fine.txt"], tmp_path / "out")
    assert counts["documents_kept"] == 1
    # Every part is one endless sentence; equal parts are duplicates of the first.
    assert counts["documents_read"] == 1 + 50
    assert counts["sentences_too_long"] >= 1


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--sentences-per-chunk", 2], "--sentences-per-chunk must be at least 3, got 2"),
        (["--held-out", 1], "--held-out must be at least 0 and below 1, got 1.0"),
        (["--workers", 0], "--workers must be at least 1, got 0"),
        (["--language", "english"], "--language must be a code"),
        (["--text-column", "body"], "expected a column 'body'"),
    ],
)
def test_wrong_flags(ctxsim: Run, corpus: Path, tmp_path: Path, flags: list[object], message: str) -> None:
    code, _, err = ctxsim("chunk", "--corpus", corpus, "--output", tmp_path / "out", *flags)
    assert code == 2 and message in err


def test_what_would_lose_or_mix_documents_is_refused(ctxsim: Run, corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/made_up.jsonl").write_bytes(corpus.read_bytes())
    code, _, err = ctxsim("chunk", "--corpus", corpus, tmp_path / "other/made_up.jsonl", "--output", tmp_path / "out")
    assert code == 2 and "two corpora are named 'made_up.jsonl'" in err
    code, _, err = ctxsim("chunk", "--corpus", tmp_path / "other", "--output", tmp_path / "other/chunks")
    assert code == 2 and "lies inside the corpus" in err
    (tmp_path / "other/made_up.jsonl").write_text('{"id": 1, "text": "A b."}\n{"id": 1, "text": "C d."}')
    code, _, err = ctxsim("chunk", "--corpus", tmp_path / "other", "--output", tmp_path / "out")
    assert code == 2 and "two documents have the id 'other/made_up/1'" in err
    (tmp_path / "short.txt").write_text("One. Two.")
    code, _, err = ctxsim("chunk", "--corpus", tmp_path / "short.txt", "--output", tmp_path / "out")
    assert code == 2 and "but 1 documents have none (1 too short)" in err


@pytest.mark.parametrize("workers", [1, 2])
def test_a_full_disk_loses_nothing(ctxsim: Run, corpus: Path, tmp_path: Path, workers: int) -> None:
    words = ("chunk", "--corpus", corpus, "--output", tmp_path / "out", "--shard-chars", 10_000, "--workers", workers)
    chunk(ctxsim, corpus, tmp_path / "undisturbed", "--shard-chars", 10_000)
    # As an interrupted run leaves it, with a full disk under the third shard.
    folder = unfinished(tmp_path / "out")
    shutil.copytree(tmp_path / "undisturbed", folder, ignore=shutil.ignore_patterns("*.parquet"))
    data = folder / "data"
    (data / ".chunks-00002.parquet.ctxsim-tmp").symlink_to("/dev/full")
    code, _, err = ctxsim(*words)
    assert code == 2 and "No space left on device" in err and "run the same command again" in err
    assert (data / "chunks-00000.parquet").exists() and not (data / "chunks-00002.parquet").exists()
    assert ctxsim(*words)[0] == 0
    assert contents(tmp_path / "out") == contents(tmp_path / "undisturbed")


def test_reading_a_damaged_folder_is_refused(ctxsim: Run, corpus: Path, tmp_path: Path) -> None:
    chunk(ctxsim, corpus, tmp_path / "out")
    shard = tmp_path / "out/data/chunks-00000.parquet"
    assert pq.read_schema(shard).names == ["chunk_id", "doc_id", "source", "split", "sentences"]
    shard.write_bytes(shard.read_bytes()[:-10])
    from ctxsim_hf.runtime.errors import UserError

    with pytest.raises(UserError, match="is damaged: expected"):
        read_chunks(tmp_path / "out")
    with pytest.raises(UserError, match="no split 'test'"):
        read_chunks(tmp_path / "out", "test")


def test_real_text(ctxsim: Run, shared_data: Path, tmp_path: Path) -> None:
    counts = chunk(ctxsim, shared_data / "corpora/bbc_news", tmp_path / "out")
    assert counts["documents_read"] == 2069
    assert counts["documents_kept"] + counts["documents_duplicate"] + sum(counts["documents_skipped"].values()) == 2069
