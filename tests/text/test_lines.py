"""Lines of files, pipes and standard input: read once where need be, bounded, never JSON."""

import gzip
import io
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_up import make_text

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text import lines
from ctxsim_hf.text.lines import bounded_lines, open_lines
from ctxsim_hf.text.pipes import ending_of, keep_pipes

Run = Callable[..., tuple[int, str, str]]
TEXT = make_text(300, 0)


@pytest.fixture
def through_pipe(tmp_path: Path) -> Iterator[Callable[[bytes, str], Path]]:
    """Make a named pipe into which a thread writes once."""
    writers = []

    def make(content: bytes, name: str) -> Path:
        path = tmp_path / name
        os.mkfifo(path)
        writers.append(threading.Thread(target=path.write_bytes, args=(content,)))
        writers[-1].start()
        return path

    yield make
    for writer in writers:
        writer.join(30)


def test_a_file_knows_its_number_of_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for content, expected in (
        ("", []),
        ("a", ["a"]),
        ("a\n\nb\r\n", ["a", "", "b"]),
        ("\ufeffa\n\ufeffb", ["a", "\ufeffb"]),
    ):
        path.write_text(content, newline="")
        found = open_lines(str(path))
        assert list(found) == list(found) == expected and len(found) == len(expected)  # type: ignore[arg-type]


def test_a_pipe_is_read_once(through_pipe: Callable[[bytes, str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(open_lines(str(through_pipe("\ufeffa\nb".encode(), "pipe")))) == ["a", "b"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"c\nd\n")))
    assert list(open_lines("-")) == ["c", "d"]


def test_what_is_no_line_of_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 100)
    for content, message in (
        (b'{"id": 1, "text": "A cat."}\n', "line 1: expected plain text, found a JSON object"),
        (b"a\n" + b"x" * 200, "line 2: expected a sentence, but the line has more than 100 bytes"),
        (b"\xff\n", "line 1: expected UTF-8"),
    ):
        path.write_bytes(content)
        with pytest.raises(UserError, match=message):
            list(open_lines(str(path)))
    with pytest.raises(UserError, match=r"cannot read .*: No such file"):
        list(open_lines(str(tmp_path / "none.txt")))
    path.write_text("{a} is a set\n")
    assert list(open_lines(str(path))) == ["{a} is a set"]


def test_a_line_that_is_too_long_is_skipped() -> None:
    stream = io.BytesIO(b"short\n" + b"x" * 3_000_000 + b"\nafter\n" + b"y" * 11)
    assert list(bounded_lines(stream, 10)) == [b"short\n", None, b"after\n", None]


def test_what_came_through_a_pipe_is_told_by_its_first_bytes(through_pipe: Callable[[bytes, str], Path]) -> None:
    assert ending_of(b"PAR1...") == ".parquet"
    assert ending_of("\ufeff\n {".encode()) == ".jsonl" and ending_of(b"Plain.") == ".txt"
    assert ending_of(gzip.compress(b'{"text": "a"}')) == ".jsonl.gz"
    named, unnamed = through_pipe(b"a", "x.jsonl"), through_pipe(b"b", "pipe")
    with keep_pipes([str(named), "plain", str(unnamed)]) as kept:
        assert [Path(name).name for name in kept] == ["x.jsonl", "plain", "pipe.txt"]
        assert Path(kept[2]).read_bytes() == b"b"
    assert not Path(kept[2]).exists()


def chunk(ctxsim: Run, corpus: object, output: Path, *flags: object) -> dict[str, object]:
    code, _, err = ctxsim("chunk", "--corpus", corpus, "--output", output, *flags)
    assert code == 0, err
    counts: dict[str, object] = json.loads((output / "stage.json").read_text())["counts"]
    return counts


def test_a_corpus_may_be_a_pipe(
    ctxsim: Run, tmp_path: Path, through_pipe: Callable[[bytes, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "".join(json.dumps({"id": i, "text": make_text(30, i)}) + "\n" for i in range(20))
    (tmp_path / "file.jsonl").write_text(rows)
    expected = chunk(ctxsim, tmp_path / "file.jsonl", tmp_path / "one")
    assert chunk(ctxsim, through_pipe(rows.encode(), "pipe"), tmp_path / "two", "--workers", 2) == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(rows.encode())))
    assert chunk(ctxsim, "-", tmp_path / "three")["contexts"] == expected["contexts"]


def test_damage_under_skip_bad(ctxsim: Run, tmp_path: Path) -> None:
    """Each bad document is counted, whatever is wrong with it, and the others are read."""
    good = [make_text(30, i) for i in range(40)]
    deep = '{"text": ' + "[" * 100_000 + "]" * 100_000 + "}"
    bad = [deep, json.dumps({"text": "x" * 1_100_000}), "[1]", json.dumps({"text": None})]
    lines = [*(json.dumps({"text": text}) for text in good), *bad]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    flags = ("--skip-bad", "--max-document-mb", 1)
    counts = chunk(ctxsim, tmp_path / "a.jsonl", tmp_path / "a", *flags)
    skipped = {"not JSON": 2, "text is null": 1, "too long": 1}
    assert (counts["documents_kept"], counts["documents_skipped"]) == (40, skipped)
    code, _, err = ctxsim("chunk", "--corpus", tmp_path / "a.jsonl", "--output", tmp_path / "b")
    assert code == 2 and err.count("\n") == 1 and "line 41: expected a JSON object" in err

    wrong = pa.array([*(text.encode() for text in good), b"A \xff."], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"text": wrong}), tmp_path / "b.parquet")
    counts = chunk(ctxsim, tmp_path / "b.parquet", tmp_path / "c", *flags)
    assert (counts["documents_kept"], counts["documents_skipped"]) == (40, {"not UTF-8": 1})

    pq.write_table(pa.table({"text": good}), tmp_path / "c.parquet", row_group_size=10, use_dictionary=False)
    damaged = bytearray((tmp_path / "c.parquet").read_bytes())
    column = pq.ParquetFile(tmp_path / "c.parquet").metadata.row_group(1).column(0)
    place = column.data_page_offset + column.total_compressed_size // 2
    damaged[place : place + 50] = bytes(50)
    (tmp_path / "c.parquet").write_bytes(damaged)
    counts = chunk(ctxsim, tmp_path / "c.parquet", tmp_path / "d", *flags)
    assert (counts["documents_kept"], counts["documents_skipped"]) == (30, {"damaged parquet": 1})


def test_a_line_without_end_ends_in_one_line(ctxsim: Run, tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.jsonl.gz", "wb", compresslevel=1) as file:
        file.write(b'{"text": "')
        for _ in range(120):
            file.write(b"x" * 1_000_000)
    code, _, err = ctxsim("chunk", "--corpus", tmp_path / "a.jsonl.gz", "--output", tmp_path / "a")
    assert code == 2 and err.count("\n") == 1
    assert "line 1: expected a document of at most 100 MB (--max-document-mb), found a longer one" in err


@pytest.mark.parametrize("name", ["sentences", "split", "chunk_id", "title,title"])
def test_columns_that_collide_are_refused(ctxsim: Run, tmp_path: Path, name: str) -> None:
    flags = ("--corpus", tmp_path / "a.jsonl", "--output", tmp_path / "a", "--keep-columns", name)
    code, _, err = ctxsim("chunk", *flags)
    assert code == 2 and f"--keep-columns cannot keep {name.split(',')[0]!r}" in err


def test_json_lines_named_txt_are_no_text(ctxsim: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(json.dumps({"id": 1, "text": TEXT}) + "\n")
    code, _, err = ctxsim("chunk", "--corpus", tmp_path / "a.txt", "--output", tmp_path / "a")
    assert code == 2 and "a file of JSON Lines must be named .jsonl" in err


def splits(folder: Path) -> dict[str, set[str]]:
    """Return the splits of the parts of each document."""
    found: dict[str, set[str]] = {}
    for path in sorted(folder.glob("data/*.parquet")):
        for row in pq.read_table(path, columns=["doc_id", "split"]).to_pylist():
            found.setdefault(row["doc_id"].partition("~")[0], set()).add(row["split"])
    return found


def test_all_parts_of_a_document_are_on_one_side(
    ctxsim: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    flags = ("--max-document-chars", 1000, "--held-out", 0.4)
    rows = [{"id": i, "text": make_text(300, i)} for i in range(12)]
    (tmp_path / "many.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert "parts_of_one_document_held_out" not in chunk(ctxsim, tmp_path / "many.jsonl", tmp_path / "many", *flags)
    found = splits(tmp_path / "many")
    assert len(found) == 12 and all(len(sides) == 1 for sides in found.values())
    assert set.union(*found.values()) == {"train", "held_out"}
    (tmp_path / "one.txt").write_text(make_text(900, 0))
    counts = chunk(ctxsim, tmp_path / "one.txt", tmp_path / "one", *flags)
    assert splits(tmp_path / "one") == {"one": {"train", "held_out"}}
    assert counts["parts_of_one_document_held_out"] == counts["documents_held_out"]
    assert "the corpus is one document, so parts of it are held out" in caplog.text


def test_a_file_name_that_is_not_utf8(ctxsim: Run, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    for name in (b"a\xe9.txt", b"a\xe8.txt"):
        (folder / os.fsdecode(name)).write_text(make_text(30, name[1]))
    assert chunk(ctxsim, folder, tmp_path / "out")["documents_kept"] == 2
    record = json.loads((tmp_path / "out/stage.json").read_text())
    assert record["inputs"]["corpus"][0]["name"] == r"caf\xe9"
    code, _, err = ctxsim("chunk", "--corpus", folder, "--output", tmp_path / os.fsdecode(b"out\xff"))
    assert code == 2 and "--output must be a name in UTF-8" in err
