"""Every format gives the same documents; every kind of bad input is named with file and line."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.reading import BadDocument, Columns, Corpus, Document, Reader
from ctxsim_hf.text.rows import open_dataset

ROWS = [{"id": "one", "text": "First text.", "title": "A"}, {"id": "two", "text": "Zweiter Text – ja.", "title": None}]


def read(path: Path | str, **columns: Any) -> list[Document | BadDocument]:
    return list(Corpus(str(path), Columns(**columns), max_document_chars=1000))


def write_jsonl(path: Path) -> None:
    path.write_text("\n".join(json.dumps(row) for row in ROWS) + "\n\n", "utf-8")


def write_jsonl_gz(path: Path) -> None:
    path.write_bytes(gzip.compress("\n".join(json.dumps(row) for row in ROWS).encode()))


def write_parquet(path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(ROWS), path)


@pytest.mark.parametrize(
    ("name", "write"), [("d.jsonl", write_jsonl), ("d.jsonl.gz", write_jsonl_gz), ("d.parquet", write_parquet)]
)
def test_rows(tmp_path: Path, name: str, write: Callable[[Path], None]) -> None:
    write(tmp_path / name)
    assert read(tmp_path / name, kept=["title"]) == [
        Document("d/one", "d", "First text.", {"title": "A"}),
        Document("d/two", "d", "Zweiter Text – ja.", {"title": ""}),
    ]
    assert [d.doc_id for d in read(tmp_path / name, id="number") if isinstance(d, Document)] == ["d/1", "d/2"]


def test_the_last_ending_counts(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "d.txt.jsonl")
    texts = [document.text for document in read(tmp_path / "d.txt.jsonl") if isinstance(document, Document)]
    assert texts == ["First text.", "Zweiter Text – ja."]


def test_columns_of_parquet_that_nobody_asked_for_are_not_read(tmp_path: Path) -> None:
    """Their bytes may be damaged, or not text, without harm; an error still names them."""
    path, rows = tmp_path / "d.parquet", pa.Table.from_pylist(ROWS)
    photos = pa.array([b"\xff\xfe photo"] * len(ROWS)).cast(pa.string(), safe=False)
    pq.write_table(rows.append_column("photo", photos), path)
    assert [found.doc_id for found in read(path, kept=["title"]) if isinstance(found, Document)] == ["d/one", "d/two"]
    for columns, flag in (({"text": "caption"}, "--text-column"), ({"kept": ["caption"]}, "--keep-columns")):
        messages = [found.message for found in read(path, **columns) if isinstance(found, BadDocument)]
        assert messages == [f"expected a column 'caption' ({flag}), found id, photo, text, title"] * len(ROWS)


@pytest.mark.parametrize("ending", [".txt", ".txt.gz"])
def test_text_files_in_a_folder(tmp_path: Path, ending: str) -> None:
    (tmp_path / "novels/part").mkdir(parents=True)
    for name in ("b", "part/a"):
        data = f"\ufeffText of {name}.\n\nMore.".encode()
        (tmp_path / f"novels/{name}{ending}").write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
    (tmp_path / "novels/README.md").write_text("passed over")
    assert read(tmp_path / "novels") == [
        Document("novels/b", "novels/b", "Text of b.\n\nMore.", {}),
        Document("novels/part/a", "novels/part/a", "Text of part/a.\n\nMore.", {}),
    ]


def test_a_data_set_by_the_datasets_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The road of a data set's id, walked on a local folder: the library takes either."""
    (tmp_path / "ours").mkdir()
    write_jsonl(tmp_path / "ours/train.jsonl")
    monkeypatch.chdir(tmp_path)
    assert [(row.place, row.values) for row in open_dataset("ours", None, "train").rows(lambda: 0)] == [
        ("ours, row 1", ROWS[0]),
        ("ours, row 2", ROWS[1]),
    ]
    with pytest.raises(UserError, match="and could not be opened as a dataset"):
        Corpus("nobody/nothing", Columns(), 1000)


def test_reading_from_any_position(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes after a position is the same however the reader came there: on from before it, or back."""
    monkeypatch.chdir(tmp_path)
    rows = [{"text": f"{number} " + "x" * (number % 7 * 400)} for number in range(600)]  # the longest in three parts
    lines = "\n".join(json.dumps(row) for row in rows)
    Path("files").mkdir()
    Path("files/a.jsonl").write_text("\n\n" + lines + "\n{bad")
    Path("files/b.jsonl.gz").write_bytes(gzip.compress(lines.encode())[:-100])
    pq.write_table(pa.Table.from_pylist(rows), "files/c.parquet")
    Path("files/d.txt").write_text("Text. " + lines[:10_000])
    Path("files/e.txt").write_bytes(b"\xff")
    Path("streamed").mkdir()
    Path("streamed/train.jsonl").write_text(lines)
    corpora = [Corpus(name, Columns(), 1000) for name in ("files", "streamed")]
    corpora[1].files, corpora[1].dataset = [], open_dataset("streamed", None, "train")
    everything = list(Reader(corpora))
    positions = [position for position, _ in everything]
    assert len(positions) > 3000 and positions == sorted(set(positions))
    assert sum(isinstance(item, BadDocument) for _, item in everything) == 3
    reader = Reader(corpora)
    for places in (range(0, len(positions), 97), range(len(positions) - 1, 0, -303)):
        for place in places:
            reader.seek(positions[place])
            assert [found for found, _ in zip(reader, range(20), strict=False)] == everything[place : place + 20]


def test_long_documents_are_read_in_parts_at_blank_lines(tmp_path: Path) -> None:
    paragraphs = [f"{i} " + "x" * 300 for i in range(10)]
    (tmp_path / "long.txt").write_text("\n\n".join(paragraphs))
    documents = read(tmp_path / "long.txt")
    assert [d.doc_id for d in documents if isinstance(d, Document)] == ["long", "long~2", "long~3", "long~4"]
    assert [len(d.text.strip().split("\n\n")) for d in documents if isinstance(d, Document)] == [3, 3, 3, 1]
    assert "".join(d.text for d in documents if isinstance(d, Document)) == "\n\n".join(paragraphs)
    (tmp_path / "line.txt").write_text("y" * 2500)
    assert "".join(d.text for d in read(tmp_path / "line.txt") if isinstance(d, Document)) == "y" * 2500


@pytest.mark.parametrize(
    ("line", "reason", "message"),
    [
        (b"{not json", "not JSON", "expected a JSON object"),
        (b'["a list"]', "not JSON", "found list"),
        (b'{"id": 1, "body": "x"}', "no such column", "expected a column 'text' (--text-column), found body, id"),
        (b'{"text": null}', "text is null", "found null"),
        (b'{"text": 5}', "text is no string", "found int '5'"),
        (b'{"text": "\xff"}', "not UTF-8", "found the byte 0xff"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, line: bytes, reason: str, message: str) -> None:
    path = tmp_path / "d.jsonl"
    path.write_bytes(b'{"text": "good"}\n' + line + b'\n{"text": "also good"}\n')
    first, bad, last = read(path)
    assert isinstance(first, Document) and isinstance(last, Document)
    assert isinstance(bad, BadDocument)
    assert bad.place == f"{path}, line 2"
    assert bad.reason == reason
    assert message in bad.message


def test_files_that_are_not_what_they_seem(tmp_path: Path) -> None:
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(b'{"text": "good"}\n' * 10000)[:-30])
    (tmp_path / "noise.jsonl.gz").write_bytes(b"\x00\x01\x02")
    (tmp_path / "picture.txt").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    (tmp_path / "wrong.parquet").write_bytes(b"not parquet at all")
    found = {(item.place.split("/")[-1], item.reason) for item in read(tmp_path) if isinstance(item, BadDocument)}
    assert found == {
        ("cut.jsonl.gz", "damaged gzip"),
        ("noise.jsonl.gz", "damaged gzip"),
        ("picture", "not UTF-8"),
        ("wrong.parquet", "damaged parquet"),
    }


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path / "missing.txt", "is not a local file or folder"),
        (lambda path: path / "missing", "is not a local file or folder"),
        (lambda path: path, "no file to read in the folder"),
        (lambda path: (path / "a.doc").write_text("x") and path / "a.doc", "expected a file name that ends in .txt"),
    ],
)
def test_nothing_to_read(tmp_path: Path, make: Callable[[Path], Path], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Corpus(str(make(tmp_path)), Columns(), 1000)


def test_fingerprint_knows_bytes_and_names_but_no_places(tmp_path: Path) -> None:
    for place in ("here", "there", "other"):
        (tmp_path / place / "c").mkdir(parents=True)
        (tmp_path / place / "c/a.txt").write_text("same" if place != "other" else "same!")
    here, there, other = (
        Corpus(str(tmp_path / p / "c"), Columns(), 1000).fingerprint() for p in ("here", "there", "other")
    )
    assert here == there != other
    assert str(tmp_path) not in json.dumps(here)
