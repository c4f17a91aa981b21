"""Corpora at URLs: the same documents as from a folder, and what is said of a URL that cannot be read."""

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import pytest
from made_up import make_text

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.reading import Columns, Corpus, Reader

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Path]:
    """A folder of files of several kinds, and the same files at memory://bucket/texts."""
    folder = tmp_path / "texts"
    (folder / "part").mkdir(parents=True)
    rows = "\n".join(json.dumps({"id": i, "text": make_text(8, i)}) for i in range(20))
    (folder / "rows.jsonl.gz").write_bytes(gzip.compress(rows.encode(), mtime=0))
    (folder / "part/long.txt").write_text("\n\n".join(make_text(9, 100 + i) for i in range(20)))
    (folder / "part/other.md").write_text("Not read.")
    memory = fsspec.filesystem("memory")
    memory.put(str(folder), "/bucket/texts", recursive=True)
    yield folder
    memory.rm("/bucket", recursive=True)


def read(location: object) -> list[object]:
    return list(Corpus(str(location), Columns(), max_document_chars=1000))


@pytest.mark.parametrize("inside", ["", "/rows.jsonl.gz", "/part/long.txt"])
def test_a_url_gives_the_documents_of_the_folder(files: Path, inside: str) -> None:
    documents = read(f"memory://bucket/texts{inside}")
    assert documents == read(f"{files}{inside}") and len(documents) >= 4


def test_reading_goes_on_from_any_position(files: Path) -> None:
    corpora = [Corpus("memory://bucket/texts", Columns(), 1000)]
    everything = list(Reader(corpora))
    reader = Reader(corpora)
    for place in (-1, 3, 7):
        reader.seek(everything[place][0])
        assert next(reader) == everything[place]


def test_the_fingerprint_follows_the_content(files: Path) -> None:
    before = Corpus("memory://bucket/texts", Columns(), 1000).fingerprint()
    assert before == Corpus("memory://bucket/texts/", Columns(), 1000).fingerprint()
    fsspec.filesystem("memory").pipe("/bucket/texts/part/long.txt", b"Now it is short.")
    assert Corpus("memory://bucket/texts", Columns(), 1000).fingerprint()["xxh3_128"] != before["xxh3_128"]


def test_chunks_of_a_url(ctxsim: Run, files: Path, tmp_path: Path) -> None:
    for corpus, output in ((files, "local"), ("memory://bucket/texts", "remote")):
        assert ctxsim("chunk", "--corpus", corpus, "--output", tmp_path / output)[0] == 0
    shards = [sorted((tmp_path / output / "data").iterdir()) for output in ("local", "remote")]
    assert [path.read_bytes() for path in shards[0]] == [path.read_bytes() for path in shards[1]]


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("memory://bucket/nothing", "no file to read at 'memory://bucket/nothing': expected file names that end in"),
        ("nowhere://bucket", "cannot open 'nowhere://bucket': Protocol not known: nowhere"),
    ],
)
def test_a_url_that_cannot_be_read(location: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(location)


def test_an_output_at_a_url_is_refused(ctxsim: Run, files: Path) -> None:
    code, _, err = ctxsim("chunk", "--corpus", files, "--output", "s3://bucket/chunks")
    assert code == 2 and "--output must be a folder on a file system that all processes share" in err
