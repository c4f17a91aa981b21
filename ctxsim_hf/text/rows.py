"""An open file or a dataset id -> its rows in order, starting at any row, in constant memory.

Rows before the first wanted one are skipped without being parsed. The first wanted row may change during reading: it
is asked for again before each row.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

import pyarrow.parquet as pq

from ctxsim_hf.runtime.errors import UserError

ENDINGS = (".txt", ".txt.gz", ".jsonl", ".jsonl.gz", ".parquet")
ENDINGS_PATTERN = "(" + "|".join(re.escape(ending) for ending in ENDINGS) + ")$"

FirstRow = Callable[[], int]


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


def json_rows(stream: IO[bytes], path: object, first_row: FirstRow) -> Iterator[Row]:
    """Yield the rows of a JSON Lines file, whose path is only shown."""
    for number, line in enumerate(stream, 1):
        if number < first_row() or not line.strip():
            continue
        place = f"{path}, line {number}"
        try:
            values = json.loads(line.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            yield Row(place, number, BadDocument(place, "not UTF-8", f"expected UTF-8 text, found {bad_byte(error)}"))
        except ValueError as error:
            yield Row(place, number, BadDocument(place, "not JSON", f"expected a JSON object: {error}"))
        else:
            if not isinstance(values, dict):
                values = BadDocument(place, "not JSON", f"expected a JSON object, found {type(values).__name__}")
            yield Row(place, number, values)


def parquet_rows(raw: IO[bytes], path: object, first_row: FirstRow) -> Iterator[Row]:
    """Yield the rows of a parquet file."""
    before = 0
    for batch in pq.ParquetFile(raw).iter_batches(batch_size=256):
        if before + len(batch) >= first_row():
            for number, values in enumerate(batch.to_pylist(), before + 1):
                if number >= first_row():
                    yield Row(f"{path}, row {number}", number, values)
        before += len(batch)


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
