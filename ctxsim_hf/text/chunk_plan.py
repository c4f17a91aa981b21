"""Documents -> a plan of which documents make up which shard, written in a first pass.

Duplicates can only be found by reading all documents in order. After that, every shard can be made on its own: the
plan says where its documents start and which are left out. The plan depends on the documents alone, not on what makes
the shards. It is memory-mapped, so its size does not matter.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import xxhash
from tqdm import tqdm

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import writing
from ctxsim_hf.text.reading import BadDocument, Corpus, Document, Position, Reader

_SCHEMA = pa.schema(
    [(name, pa.int64()) for name in ("file", "row", "part", "documents")]
    + [("left_out", pa.list_(pa.int64())), ("counts", pa.string())]
)


class Shard(NamedTuple):
    """The consecutive documents of one parquet file."""

    start: Position
    documents: int  # number of documents to read, including those left out
    left_out: Sequence[int]  # which of them are left out: duplicates, and those without text
    counts: Counter[str]  # documents read, and documents left out by reason

    @property
    def is_empty(self) -> bool:
        return self.documents == len(self.left_out)


class ChunkPlan:
    """The shards in a file written by `write_plan`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @cached_property
    def _file(self) -> pa.ipc.RecordBatchFileReader:
        return pa.ipc.open_file(pa.memory_map(str(self._path)))

    def __len__(self) -> int:
        return int(self._file.num_record_batches)

    def __iter__(self) -> Iterator[Shard]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, number: int) -> Shard:
        (row,) = self._file.get_batch(number).to_pylist()
        counts = Counter(json.loads(row["counts"]))
        return Shard(Position(row["file"], row["row"], row["part"]), row["documents"], row["left_out"], counts)


def write_plan(path: Path, corpora: Sequence[Corpus], shard_chars: int, skip_bad: bool) -> None:
    """Read all documents and write the plan of their shards.

    Args:
        path (`Path`): The file to write.
        corpora (`Sequence[Corpus]`): What to read.
        shard_chars (`int`): A shard ends with the document that makes it at least this long.
        skip_bad (`bool`): Leave out documents that cannot be read instead of raising an error.
    """
    with writing(path, shared=True) as temporary, pa.ipc.new_file(str(temporary), _SCHEMA) as file:
        for shard in _shards(corpora, shard_chars, skip_bad):
            row = shard.start._asdict() | {"documents": shard.documents, "left_out": shard.left_out}
            row["counts"] = json.dumps(shard.counts)
            file.write_batch(pa.RecordBatch.from_pylist([row], _SCHEMA))


def _shards(corpora: Sequence[Corpus], shard_chars: int, skip_bad: bool) -> Iterator[Shard]:
    start, left_out, size, counts = Position(), [], 0, Counter()  # type: Position, list[int], int, Counter[str]
    seen, reader = _Seen(), Reader(corpora)
    total_bytes = sum(corpus.total_bytes for corpus in corpora)
    with tqdm(total=total_bytes or None, unit="B", unit_scale=True, desc="read documents", disable=None) as bar:
        for position, item in reader:
            if not counts:
                start = position
            reason = _reason_to_leave_out(item, seen, skip_bad)
            if reason:
                left_out.append(counts["documents_read"])
                counts[reason] += 1
            elif isinstance(item, Document):
                size += len(item.text)
            counts["documents_read"] += 1
            if isinstance(item, Document):
                counts["documents_whole"] += position.part == 0
                counts["document_parts"] += 1
            if size >= shard_chars:
                yield Shard(start, counts["documents_read"], left_out, counts)
                left_out, size, counts = [], 0, Counter()
                bar.update(reader.bytes_read - bar.n)
        bar.update(reader.bytes_read - bar.n)
    yield Shard(start, counts["documents_read"], left_out, counts)


def _reason_to_leave_out(item: Document | BadDocument, seen: "_Seen", skip_bad: bool) -> str | None:
    if isinstance(item, BadDocument):
        if not skip_bad:
            raise UserError(f"{item.place}: {item.message}. Fix it, or skip such documents with --skip-bad")
        return f"skipped: {item.reason}"
    text = item.text.strip()
    if not text:
        return "skipped: empty"
    if seen.before(text, kind=0):
        return "documents_duplicate"
    if seen.before(item.doc_id, kind=1):
        raise UserError(
            f"two documents have the id {item.doc_id!r}; name a column of unique ids with --id-column, "
            "or a column that does not exist to number the rows"
        )
    return None


class _Seen:
    """The hashes of texts and ids seen so far, in a temporary database that moves to disk when it grows."""

    def __init__(self) -> None:
        self._table = sqlite3.connect("", isolation_level=None)
        self._table.execute("PRAGMA journal_mode = OFF")
        self._table.execute("CREATE TABLE seen (key INTEGER PRIMARY KEY)")
        self._table.execute("BEGIN")

    def before(self, text: str, kind: int) -> bool:
        """Add a text of a kind; return whether it was there before."""
        signed = xxhash.xxh3_64_intdigest(text.encode("utf-8", "replace"), kind) - (1 << 63)
        return self._table.execute("INSERT OR IGNORE INTO seen VALUES (?)", (signed,)).rowcount == 0
