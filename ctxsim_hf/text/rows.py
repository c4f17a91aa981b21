"""An open file or a dataset id -> its rows in order, starting at any row, in constant memory.

Rows before the first wanted one are skipped without being parsed. The first wanted row may change during reading: it
is asked for again before each row.
"""

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, NamedTuple, cast

import pyarrow as pa
import pyarrow.parquet as pq

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.lines import MAX_LINE_BYTES, bounded_lines

ENDINGS = (".txt", ".txt.gz", ".jsonl", ".jsonl.gz", ".parquet")
ENDINGS_PATTERN = "(" + "|".join(re.escape(ending) for ending in ENDINGS) + ")$"

FirstRow = Callable[[], int]
# What is raised for damaged bytes by gzip, and by pyarrow, where a size may ask for more memory than there is.
GZIP_ERRORS = (EOFError, gzip.BadGzipFile, zlib.error)
PARQUET_ERRORS = (pa.ArrowException, OSError, MemoryError, UnicodeDecodeError)


@dataclass(frozen=True, slots=True)
class BadDocument:
    """A document that cannot be read, and why."""

    place: str  # file and line
    reason: str  # the name it is counted by
    message: str


class Row(NamedTuple):
    """The columns of one row, or what is wrong with it."""

    place: str
    number: int  # from 1; blank lines count
    values: Mapping[str, Any] | BadDocument
    columns: Sequence[str] = ()  # all of the file, where only some were read

    @property
    def column_names(self) -> str:
        """The names of all columns, for an error message."""
        return ", ".join(sorted(self.columns or cast(Mapping[str, Any], self.values)))


def json_rows(stream: IO[bytes], path: object, first_row: FirstRow, max_bytes: int = MAX_LINE_BYTES) -> Iterator[Row]:
    """Yield the rows of a JSON Lines file, whose path is only shown; one of more than `max_bytes` is bad."""
    for number, line in enumerate(bounded_lines(stream, max_bytes), 1):
        if number < first_row():
            continue
        place = f"{path}, line {number}"
        if line is None:
            yield Row(place, number, too_long(place, max_bytes))
            continue
        if not line.strip():
            continue
        try:
            values = json.loads(line.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            yield Row(place, number, BadDocument(place, "not UTF-8", f"expected UTF-8 text, found {bad_byte(error)}"))
        except (ValueError, RecursionError) as error:  # the latter where it is nested too deeply
            yield Row(place, number, BadDocument(place, "not JSON", f"expected a JSON object: {error}"))
        else:
            if not isinstance(values, dict):
                values = BadDocument(place, "not JSON", f"expected a JSON object, found {type(values).__name__}")
            yield Row(place, number, values)


def parquet_rows(
    raw: IO[bytes],
    path: object,
    first_row: FirstRow,
    max_bytes: int = MAX_LINE_BYTES,
    columns: Sequence[str] | None = None,
) -> Iterator[Row]:
    """Yield the rows of a parquet file. A group of rows that cannot be read is one bad row.

    Args:
        raw (`IO[bytes]`): The file.
        path (`object`): Its path, which is only shown.
        first_row (`Callable`): Returns the number of the first row that is wanted.
        max_bytes (`int`): A group whose rows have more on average is bad.
        columns (`Sequence[str]`, *optional*): The columns to read, of those that are there: others may hold images or
            vectors. None reads all.
    """
    file = pq.ParquetFile(raw)
    names = file.schema_arrow.names
    read = names if columns is None else [name for name in names if name in columns]
    before = 0
    for group in range(file.num_row_groups):
        about, number = file.metadata.row_group(group), before
        if before + about.num_rows >= first_row():
            try:
                if about.num_rows and about.total_byte_size > max_bytes * about.num_rows:
                    place = f"{path}, row {before + 1}"
                    yield Row(place, before + 1, too_long(place, max_bytes))
                else:
                    for batch in file.iter_batches(batch_size=256, row_groups=[group], columns=read):
                        for row in _batch_rows(batch, path, number, first_row):
                            yield row._replace(columns=names)
                        number += len(batch)
            except PARQUET_ERRORS as error:
                place = f"{path}, row {number + 1}"
                yield Row(place, number + 1, BadDocument(place, "damaged parquet", damaged_parquet(error)))
        before += about.num_rows


def _batch_rows(batch: pa.RecordBatch, path: object, before: int, first_row: FirstRow) -> Iterator[Row]:
    if before + len(batch) < first_row():
        return
    try:
        rows = batch.to_pylist()
    except UnicodeDecodeError:  # in one of them
        rows = [_one_row(batch.slice(place, 1), f"{path}, row {before + place + 1}") for place in range(len(batch))]
    for number, values in enumerate(rows, before + 1):
        if number >= first_row():
            yield Row(f"{path}, row {number}", number, values)


def _one_row(batch: pa.RecordBatch, place: str) -> dict[str, Any] | BadDocument:
    try:
        (values,) = batch.to_pylist()
    except UnicodeDecodeError as error:
        return BadDocument(place, "not UTF-8", f"expected UTF-8 text, found {bad_byte(error)}")
    found: dict[str, Any] = values
    return found


def damaged_parquet(error: BaseException) -> str:
    """Return the message for a parquet file that cannot be read."""
    return f"expected a parquet file: {str(error).splitlines()[0] if str(error) else type(error).__name__}"


def too_long(place: str, max_bytes: int) -> BadDocument:
    """Return the bad document for a row of more bytes than allowed."""
    limit = f"at most {max_bytes / 1_000_000:g} MB (--max-document-mb)"
    return BadDocument(place, "too long", f"expected a document of {limit}, found a longer one")


class DatasetRows(NamedTuple):
    """One split of a dataset of the `datasets` library, streamed."""

    id: str
    hash: str
    split: str
    stream: Callable[[], Any]

    def rows(self, first_row: FirstRow) -> Iterator[Row]:
        """Yield the rows of the split."""
        skipped = max(0, first_row() - 1)
        for number, values in enumerate(self.stream().skip(skipped), skipped + 1):
            if number >= first_row():
                yield Row(f"{self.id}, row {number}", number, values)


def open_dataset(id: str, config_name: str | None, split: str) -> DatasetRows:
    """Find a dataset by its id, without reading it."""
    missing = f"{id!r} is not a local file or folder"
    if re.search(ENDINGS_PATTERN, id) or not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", id):
        raise UserError(f"{missing}; check the path")
    import datasets  # after the cheap checks, since it takes a second to import

    try:
        builder = datasets.load_dataset_builder(id, config_name)
    except Exception as error:  # the library raises many types, all with a readable message
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{missing}, and could not be opened as a dataset: {reason}") from error
    if builder.info.splits and split not in builder.info.splits:
        raise UserError(f"the dataset {id!r} has no split {split!r}; expected one of {', '.join(builder.info.splits)}")
    return DatasetRows(id, str(builder.hash), split, lambda: builder.as_streaming_dataset(split=split))


def bad_byte(error: UnicodeDecodeError) -> str:
    return f"the byte 0x{error.object[error.start]:02x}"
