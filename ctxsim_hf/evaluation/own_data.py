"""A file, a folder or a dataset's id that a user names -> its rows, and a name for the tables."""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, cast

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.lines import MAX_LINE_BYTES, is_pipe
from ctxsim_hf.text.pipes import keep_pipes
from ctxsim_hf.text.rows import PARQUET_ERRORS, BadDocument, Row, json_rows, parquet_rows

ENDINGS = (".jsonl", ".jsonl.gz", ".tsv", ".tsv.gz", ".csv", ".csv.gz", ".parquet")
_ENDING = re.compile("(" + "|".join(map(re.escape, ENDINGS)) + ")$")
_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
SPLITS = ("train", "validation", "dev", "test")
_SAYS_NOTHING = {*SPLITS, "valid", "pairs", "queries", "data", ".", "..", "/"}


def split_name(spelling: str) -> tuple[str, str]:
    """Return the name and the location of `LOCATION` or `NAME=LOCATION`. A location's own name is that of its file,
    or of the nearest folder above that says more: `medical` for medical/pairs/validation.jsonl."""
    name, named, location = spelling.partition("=")
    if named and "/" not in name and not Path(spelling).exists():
        return name, location
    parts = [*Path(spelling).parts[:-1], _stem(spelling)]
    return next((part for part in reversed(parts) if part not in _SAYS_NOTHING), parts[-1]), spelling


def split_of(location: str, split: str) -> str:
    """Return the split that a location holds: a file's by its name, a folder's or dataset's the one asked for."""
    if not Path(location).is_file():
        return split
    stem = _stem(location)
    return stem if stem in SPLITS else "all"


def read_rows(location: str, split: str | None = None) -> list[Row]:
    """Read all rows, of which there must be one at least.

    Args:
        location (`str`): A file that ends in one of `ENDINGS`, or what `load_dataset` opens: a folder or an id.
            TSV files have no quotation marks around cells; CSV files may have them.
        split (`str`, *optional*): Split of a folder or dataset. None reads all of them, one after another.
    """
    if is_pipe(location):
        with keep_pipes([location]) as (kept,):
            return read_rows(_with_own_ending(kept), split)
    path = Path(location)
    rows = _file_rows(path) if path.is_file() else _dataset_rows(location, split)
    for row in rows:
        if isinstance(row.values, BadDocument):
            raise UserError(f"{row.values.place}: {row.values.message}")
    if not rows:
        raise UserError(f"expected rows in {location!r}, found none")
    return rows


def find_column(rows: Sequence[Row], names: Sequence[str], location: str) -> str:
    """Return the first of the names that is a column of the rows."""
    columns: dict[str, None] = {}
    for row in rows:
        columns.update(dict.fromkeys(cast(dict[str, Any], row.values)))
    found = next((name for name in names if name in columns), None)
    if found is None:
        wanted = " or ".join(map(repr, names))
        raise UserError(f"expected a column {wanted} in {location!r}, found only {', '.join(columns)}")
    return found


def _with_own_ending(kept: str) -> str:
    """Rename what came through a pipe as text: a heading with tabs is that of a TSV file."""
    path = Path(kept)
    if path.suffix != ".txt":
        return kept
    with path.open("rb") as file:
        ending = ".tsv" if b"\t" in file.readline(MAX_LINE_BYTES) else ".csv"
    return str(path.rename(path.with_suffix(ending)))


def _file_rows(path: Path) -> list[Row]:
    if not (ending := _ending(path.name)):
        raise UserError(f"cannot read {str(path)!r}: expected a name that ends in {', '.join(ENDINGS)}")
    try:
        with path.open("rb") as raw:
            stream = cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if ending.endswith(".gz") else raw
            if ending == ".parquet":
                return list(parquet_rows(raw, path, lambda: 0))
            if ending.startswith(".jsonl"):
                return list(json_rows(stream, path, lambda: 0))
            return list(_separated_rows(stream, path, tabs=ending.startswith(".tsv")))
    except (*PARQUET_ERRORS, EOFError, zlib.error, csv.Error) as error:
        raise UserError(f"cannot read {str(path)!r}: {str(error).splitlines()[0]}") from error


def _separated_rows(stream: IO[bytes], path: Path, tabs: bool) -> Iterator[Row]:
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    reader = (
        csv.DictReader(text, delimiter="\t", quoting=csv.QUOTE_NONE, strict=True)
        if tabs
        else csv.DictReader(text, strict=True)
    )
    for number, values in enumerate(reader, 1):
        if None in values or None in values.values():
            cells = f"expected {len(reader.fieldnames or ())} cells, as in the heading"
            raise UserError(f"{str(path)!r}, line {reader.line_num}: {cells}")
        yield Row(f"{path}, line {reader.line_num}", number, values)


def _dataset_rows(location: str, split: str | None) -> list[Row]:
    if not Path(location).is_dir() and (_ending(location) or not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", location)):
        raise UserError(f"{location!r} is no file or folder here")
    import datasets  # after the cheap checks: it takes a second to import

    try:
        found = datasets.load_dataset(location, split=split)
    except Exception as error:  # the library raises many kinds, all with a readable message
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        which = "a dataset" if split is None else f"the split {split!r} of a dataset (--split)"
        raise UserError(f"expected {which} in {location!r}: {reason}") from error
    parts = found.values() if split is None else [found]
    values = [row for part in parts for row in part]
    return [Row(f"{location}, row {number}", number, row) for number, row in enumerate(values, 1)]


def _ending(name: str) -> str:
    found = _ENDING.search(name)
    return found[0] if found else ""


def _stem(location: str) -> str:
    return _SHARD.sub("", _ENDING.sub("", Path(location).name))
