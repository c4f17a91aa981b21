"""Files, folders or a `datasets` id -> a stream of documents, in a fixed order and in flat memory.

Nothing is dropped silently: what cannot be read comes out of the stream as a `Flaw` that says where and why.
"""

import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import digest_file

# Control characters that are no white space, and halves of surrogate pairs, which no UTF-8 file can hold.
UNPRINTABLE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Document:
    doc_id: str
    source: str
    text: str
    kept: dict[str, str]  # the columns the user asked to keep, as text


@dataclass(frozen=True, slots=True)
class Flaw:
    """Something that should have been a document."""

    place: str  # file and line
    reason: str  # the name it is counted under
    message: str


@dataclass(frozen=True)
class Columns:
    """Which columns of a row are read."""

    text: str = "text"
    id: str = "id"
    kept: Sequence[str] = ()


class Row(NamedTuple):
    place: str
    number: int
    values: Mapping[str, Any] | Flaw


class Corpus:
    """The documents of one `--corpus` argument: a file, a folder of files, or a `datasets` id.

    Args:
        location (`str`): A path if one exists there, else a data set's id.
        columns (`Columns`): What to read of each row.
        max_document_chars (`int`): A longer document is read as several, cut at a blank line where there is one.
        config_name (`str`, *optional*): Configuration of a data set.
        split (`str`): Split of a data set.
    """

    def __init__(
        self,
        location: str,
        columns: Columns,
        max_document_chars: int,
        config_name: str | None = None,
        split: str = "train",
    ) -> None:
        self.location, self.columns, self.limit = location, columns, max_document_chars
        path = Path(location)
        self.name = path.resolve().name if path.exists() else location
        self.files = _find_files(path) if path.exists() else []
        self._dataset = None if self.files else open_dataset(location, config_name, split)
        self.total_bytes = sum(file.stat().st_size for file in self.files)
        self._bytes_before, self._open_file = 0, None  # type: int, IO[bytes] | None

    @property
    def bytes_read(self) -> int:
        """How far the reader has come in the files as they lie on disk, for a progress bar."""
        return self._bytes_before + (self._open_file.tell() if self._open_file else 0)

    def fingerprint(self) -> dict[str, Any]:
        """What stage.json says of this input: its name and a digest of its bytes, but not where it lay."""
        if self._dataset:
            return {"name": self.name, "dataset_hash": self._dataset.hash, "split": self._dataset.split}
        digest = xxhash.xxh3_128()
        for file in self.files:
            digest.update(f"{self._source(file)}\0{digest_file(file)}\n".encode())
        return {"name": self.name, "files": len(self.files), "bytes": self.total_bytes, "xxh3_128": digest.hexdigest()}

    def __iter__(self) -> Iterator[Document | Flaw]:
        if self._dataset:
            yield from self._from_rows(self._dataset.rows(), self.name)
        for path in self.files:
            with path.open("rb") as raw:
                self._open_file = raw
                yield from self._read_file(path, raw)
                self._open_file = None
            self._bytes_before += path.stat().st_size

    def _source(self, path: Path) -> str:
        """`novels/part1/emma` for part1/emma.txt in the folder novels."""
        base = Path(self.location)
        inside = path.relative_to(base).as_posix() if base.is_dir() else path.name
        stem = re.sub(_ENDINGS_PATTERN, "", inside)
        return clean(f"{self.name}/{stem}" if base.is_dir() else stem)[0]

    def _read_file(self, path: Path, raw: IO[bytes]) -> Iterator[Document | Flaw]:
        source = self._source(path)
        try:
            stream = cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if path.suffix == ".gz" else raw
            if ".txt" in path.suffixes[-2:]:
                yield from self._from_text(stream, source)
            elif path.suffix == ".parquet":
                yield from self._from_rows(_parquet_rows(raw, path), source)
            else:
                yield from self._from_rows(_json_rows(stream, path), source)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            yield Flaw(str(path), "damaged gzip", f"expected a whole gzip file: {error}")
        except pa.ArrowInvalid as error:
            yield Flaw(str(path), "damaged parquet", f"expected a parquet file: {str(error).splitlines()[0]}")

    def _from_text(self, stream: IO[bytes], source: str) -> Iterator[Document | Flaw]:
        text = io.TextIOWrapper(stream, encoding="utf-8-sig")
        try:
            for name, part in _parts(source, text, self.limit):
                yield Document(name, source, part, dict.fromkeys(self.columns.kept, ""))
        except UnicodeDecodeError as error:
            yield Flaw(source, "not UTF-8", f"expected UTF-8 text, found {_bad_byte(error)}; is it a text file?")
        finally:
            text.detach()  # the stream is closed by whoever opened it

    def _from_rows(self, rows: Iterator[Row], source: str) -> Iterator[Document | Flaw]:
        for place, number, values in rows:
            if isinstance(values, Flaw):
                yield values
                continue
            if flaw := self._flaw_of(values, place):
                yield flaw
                continue
            doc_id = f"{source}/{values.get(self.columns.id, number)}"
            kept = {name: _as_text(values[name]) for name in self.columns.kept}
            for name, part in _parts(clean(doc_id)[0], io.StringIO(values[self.columns.text]), self.limit):
                yield Document(name, source, part, kept)

    def _flaw_of(self, values: Mapping[str, Any], place: str) -> Flaw | None:
        for name in (self.columns.text, *self.columns.kept):
            if name not in values:
                flag = "--text-column" if name == self.columns.text else "--keep-columns"
                return Flaw(
                    place, "no such column", f"expected a column {name!r} ({flag}), found {', '.join(sorted(values))}"
                )
        text = values[self.columns.text]
        if text is None:
            return Flaw(place, "text is null", f"expected text in column {self.columns.text!r}, found null")
        if not isinstance(text, str):
            found = f"{type(text).__name__} {str(text)[:40]!r}"
            return Flaw(place, "text is no string", f"expected text in column {self.columns.text!r}, found {found}")
        return None


def clean(text: str) -> tuple[str, int]:
    """Replace what cannot be printed by spaces; also how many characters that were."""
    return UNPRINTABLE.subn(" ", text)


def _find_files(path: Path) -> list[Path]:
    if path.is_file():
        if not re.search(_ENDINGS_PATTERN, path.name):
            raise UserError(f"cannot read {str(path)!r}: expected a name that ends in {', '.join(ENDINGS)}")
        return [path]
    files = sorted(file for file in path.rglob("*") if file.is_file() and re.search(_ENDINGS_PATTERN, file.name))
    if not files:
        raise UserError(
            f"no file to read in the folder {str(path)!r}: expected names that end in {', '.join(ENDINGS)}"
        )
    return files


ENDINGS = (".txt", ".txt.gz", ".jsonl", ".jsonl.gz", ".parquet")
_ENDINGS_PATTERN = "(" + "|".join(re.escape(ending) for ending in ENDINGS) + ")$"


def _json_rows(stream: IO[bytes], path: Path) -> Iterator[Row]:
    for number, line in enumerate(stream, 1):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        try:
            values = json.loads(line.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            yield Row(place, number, Flaw(place, "not UTF-8", f"expected UTF-8 text, found {_bad_byte(error)}"))
        except ValueError as error:
            yield Row(place, number, Flaw(place, "not JSON", f"expected a JSON object: {error}"))
        else:
            if not isinstance(values, dict):
                values = Flaw(place, "not JSON", f"expected a JSON object, found {type(values).__name__}")
            yield Row(place, number, values)


def _parquet_rows(raw: IO[bytes], path: Path) -> Iterator[Row]:
    number = 0
    for batch in pq.ParquetFile(raw).iter_batches(batch_size=256):
        for values in batch.to_pylist():
            number += 1
            yield Row(f"{path}, row {number}", number, values)


class _Dataset(NamedTuple):
    id: str
    hash: str
    split: str
    examples: Callable[[], Any]

    def rows(self) -> Iterator[Row]:
        for number, values in enumerate(self.examples(), 1):
            yield Row(f"{self.id}, row {number}", number, values)


def open_dataset(id: str, config_name: str | None, split: str) -> _Dataset:
    missing = f"{id!r} is no file or folder here"
    if re.search(_ENDINGS_PATTERN, id) or not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", id):
        raise UserError(missing)
    import datasets  # after the cheap checks: it takes a second to import

    try:
        builder = datasets.load_dataset_builder(id, config_name)
    except Exception as error:  # the library raises many kinds, all with a readable message
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{missing}, nor could it be opened as a data set: {reason}") from error
    if builder.info.splits and split not in builder.info.splits:
        raise UserError(f"the data set {id!r} has no split {split!r}, only {', '.join(builder.info.splits)}")
    return _Dataset(id, str(builder.hash), split, lambda: builder.as_streaming_dataset(split=split))


def _parts(name: str, text: IO[str], limit: int) -> Iterator[tuple[str, str]]:
    """The text as (name, whole), or cut into parts of at most `limit` characters: (name, 1st), (name~2, 2nd), ..."""
    number, rest = 1, ""
    while block := text.read(limit):
        rest += block
        while len(rest) > limit:
            blank_line, space = rest.rfind("\n\n", 0, limit - 1), rest.rfind(" ", 0, limit)
            cut = blank_line + 2 if blank_line > 0 else space + 1 if space > 0 else limit
            yield (name if number == 1 else f"{name}~{number}"), rest[:cut]
            number, rest = number + 1, rest[cut:]
    if rest or number == 1:
        yield (name if number == 1 else f"{name}~{number}"), rest


def _as_text(value: Any) -> str:
    return "" if value is None else clean(str(value))[0]


def _bad_byte(error: UnicodeDecodeError) -> str:
    return f"the byte 0x{error.object[error.start]:02x}"
