"""Files, folders or a dataset id -> a stream of documents, in a fixed order and in constant memory.

Nothing is dropped silently: what cannot be read comes out of the stream as a `BadDocument` that says where and why.
"""

import gzip
import os
import re
import sys
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, Self, cast

import xxhash

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import digest_file
from ctxsim_hf.text.documents import Columns, Document, Found, clean, documents_in_rows, documents_in_text
from ctxsim_hf.text.lines import MAX_LINE_BYTES, open_input
from ctxsim_hf.text.remote_files import RemoteFile, find_remote_files, is_url, remote_name
from ctxsim_hf.text.rows import (
    ENDINGS,
    ENDINGS_PATTERN,
    GZIP_ERRORS,
    PARQUET_ERRORS,
    BadDocument,
    DatasetRows,
    damaged_parquet,
    json_rows,
    open_dataset,
    parquet_rows,
)


class Corpus:
    """The documents of one `--corpus` argument: a file, a folder of files, a URL of either, or a dataset id.

    Args:
        location (`str`): An existing path, a URL, or a dataset id.
        columns (`Columns`): The columns to read.
        max_document_chars (`int`): A longer document is read as several, cut at a blank line where there is one.
        config_name (`str`, *optional*): Configuration of a dataset.
        split (`str`): Split of a dataset.
        max_document_bytes (`int`): A line of JSON or a row of parquet with more is not read.
    """

    def __init__(
        self,
        location: str,
        columns: Columns,
        max_document_chars: int,
        config_name: str | None = None,
        split: str = "train",
        max_document_bytes: int = MAX_LINE_BYTES,
    ) -> None:
        self.location, self.columns, self.limit = location, columns, max_document_chars
        self.max_bytes = max_document_bytes
        path, self.files = Path(location), []  # type: Path, Sequence[Path | RemoteFile]
        if is_url(location):
            self.name, self.files = remote_name(location), find_remote_files(location)
        else:
            self.name = printable(path.resolve().name) if path.exists() else location
            self.files = _find_files(path) if path.exists() else []
        self.dataset = None if self.files else open_dataset(location, config_name, split)
        self.total_bytes = sum(map(_size, self.files))

    def sources(self) -> Sequence[Path | RemoteFile | DatasetRows]:
        """Return the files or the dataset, in the order of reading."""
        return self.files if self.dataset is None else [self.dataset]

    def fingerprint(self) -> dict[str, Any]:
        """Describe the corpus for stage.json: its name and a digest of its bytes, but not its path.

        Of a remote file, what its file system calls its version stands for the bytes, which need not be fetched.
        """
        if self.dataset:
            return {"name": self.name, "dataset_hash": self.dataset.hash, "split": self.dataset.split}
        digest = xxhash.xxh3_128()
        for file in self.files:
            digest.update(f"{self.source(file)}\0{_content(file)}\n".encode())
        return {"name": self.name, "files": len(self.files), "bytes": self.total_bytes, "xxh3_128": digest.hexdigest()}

    def __iter__(self) -> Iterator[Document | BadDocument]:
        return (item for _, item in Reader([self]))

    def source(self, file: Path | RemoteFile) -> str:
        """Return the name of a file's source: `novels/part1/emma` for part1/emma.txt in the folder novels."""
        if isinstance(file, RemoteFile):
            is_folder, inside = file.in_folder, file.inside
        else:
            base = Path(self.location)
            is_folder = base.is_dir()
            inside = printable(file.relative_to(base).as_posix() if is_folder else file.name)
        stem = re.sub(ENDINGS_PATTERN, "", inside)
        return clean(f"{self.name}/{stem}" if is_folder else stem)[0]


class Position(NamedTuple):
    """The place of a document, good or bad, in the order of reading."""

    file: int = 0  # its number in all corpora; a dataset counts as one file
    row: int = 0  # its number in the file, from 1; 0 in a text file
    part: int = 0  # its number in a document that is longer than the limit


_END = sys.maxsize  # the row of a damaged end of a file, after all rows that could be read


class Reader:
    """Reads the documents of corpora in order, starting at any position.

    After `seek` to a later position, the reader continues in the open file and skips the rows between without parsing
    them. Only for an earlier position does it reopen files.
    """

    def __init__(self, corpora: Sequence[Corpus]) -> None:
        self._files = [(corpus, file) for corpus in corpora for file in corpus.sources()]
        self._start, self._last = Position(), Position(-1)
        self._items = self._read()
        self._bytes_before, self._open_file = 0, None  # type: int, IO[bytes] | None

    @property
    def bytes_read(self) -> int:
        """Return how many bytes on disk the reader has passed, for a progress bar."""
        return self._bytes_before + (self._open_file.tell() if self._open_file else 0)

    def seek(self, position: Position) -> None:
        """Make the document at a position the next one to be read."""
        if position <= self._last:
            self._items.close()
            self._items = self._read()
        self._start = position

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> tuple[Position, Document | BadDocument]:
        self._last, item = next(self._items)
        return self._last, item

    def _read(self) -> Generator[tuple[Position, Document | BadDocument], None, None]:
        for number, (corpus, file) in enumerate(self._files):
            if number < self._start.file:
                continue
            for row, part, item in self._read_file(number, corpus, file):
                if (position := Position(number, row, part)) >= self._start:
                    yield position, item
                if number < self._start.file:  # `seek` was called meanwhile
                    break

    def _read_file(self, number: int, corpus: Corpus, file: Path | RemoteFile | DatasetRows) -> Found:
        def first_row() -> int:
            return self._start.row if number == self._start.file else 0

        columns, limit = corpus.columns, corpus.limit
        if isinstance(file, DatasetRows):
            yield from documents_in_rows(file.rows(first_row), corpus.name, columns, limit)
            return
        source = corpus.source(file)
        with file.open("rb") as raw:
            self._open_file = raw
            try:
                stream = cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if file.suffix == ".gz" else raw
                if file.suffix == ".txt" or file.suffixes[-2:] == [".txt", ".gz"]:
                    yield from documents_in_text(stream, source, columns, limit)
                else:
                    if file.suffix == ".parquet":
                        rows = parquet_rows(raw, file, first_row, corpus.max_bytes, columns.names)
                    else:
                        rows = json_rows(stream, file, first_row, corpus.max_bytes)
                    yield from documents_in_rows(rows, source, columns, limit)
            except GZIP_ERRORS as error:
                yield _END, 0, BadDocument(str(file), "damaged gzip", f"expected a whole gzip file: {error}")
            except PARQUET_ERRORS as error:
                if file.suffix != ".parquet":
                    raise UserError(f"cannot read {str(file)!r}: {error}") from error
                yield _END, 0, BadDocument(str(file), "damaged parquet", damaged_parquet(error))
            finally:
                self._open_file = None
        self._bytes_before += _size(file)


def _content(file: Path | RemoteFile) -> str:
    """Return what changes with the content of a file."""
    if isinstance(file, RemoteFile):
        return file.version()
    with open_input(str(file)):  # says in one line what cannot be read
        return digest_file(file)


def _size(file: Path | RemoteFile) -> int:
    return file.size if isinstance(file, RemoteFile) else file.stat().st_size


def printable(name: str) -> str:
    r"""Return the name of a file as text; bytes that are not UTF-8 become `\xff`."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _find_files(path: Path) -> list[Path]:
    if path.is_file():
        if not re.search(ENDINGS_PATTERN, path.name):
            raise UserError(f"cannot read {str(path)!r}: expected a file name that ends in {', '.join(ENDINGS)}")
        return [path]
    files = sorted(file for file in path.rglob("*") if file.is_file() and re.search(ENDINGS_PATTERN, file.name))
    if not files:
        raise UserError(
            f"no file to read in the folder {str(path)!r}: expected file names that end in {', '.join(ENDINGS)}"
        )
    return files
