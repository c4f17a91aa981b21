"""Documents -> chunks, a stage: `ctxsim chunk`.

One reader goes through the documents in order and hands them out in shards of a few megabytes; workers split
sentences and write one parquet file a shard. Which documents make up a shard depends on the documents alone, so the
bytes are the same for any number of workers, and a shard that is on disk already is not made again.
"""

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import xxhash
from tqdm import tqdm
from transformers.hf_argparser import HfArg

from ctxsim_hf.runtime.arguments import StageArguments
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import writing
from ctxsim_hf.runtime.parallel import ordered_map
from ctxsim_hf.runtime.stage import Stage, read_stage
from ctxsim_hf.text.chunks import SPLITS, context_positions, even_chunks
from ctxsim_hf.text.reading import Columns, Corpus, Document, Flaw
from ctxsim_hf.text.sentences import split_document

_COUNTS_KEY = b"ctxsim_counts"


@dataclass(kw_only=True)
class ChunkArguments(StageArguments):
    corpus: list[str] = HfArg(
        help="What to read: .txt, .txt.gz, .jsonl, .jsonl.gz or .parquet files, folders of them, or ids of data sets."
    )
    text_column: str = HfArg(default="text", help="Column that holds the text (jsonl, parquet, data sets).")
    id_column: str = HfArg(default="id", help="Column that names a document; the row's number where there is none.")
    keep_columns: str = HfArg(default="", help="Columns to keep beside each chunk, e.g. title,url.")
    config_name: str | None = HfArg(default=None, help="Configuration, where a corpus is the id of a data set.")
    split: str = HfArg(default="train", help="Split to read, where a corpus is the id of a data set.")
    language: str = HfArg(default="en", help="Language code for the sentence splitter.")
    sentences_per_chunk: int = HfArg(default=10, help="A chunk holds at most so many sentences.")
    max_sentence_chars: int = HfArg(default=2000, help="A longer sentence is left out; no context spans the gap.")
    max_document_chars: int = HfArg(default=1_000_000, help="A longer document is read as several documents.")
    held_out: float = HfArg(default=0.02, help="Share of documents kept for evaluation, chosen by a hash of their id.")
    shard_chars: int = HfArg(
        default=4_000_000,
        help="Characters of text in a shard: little enough to lose in a crash, enough to have few files.",
    )
    skip_bad: bool = HfArg(default=False, help="Count and pass over what cannot be read instead of stopping there.")
    workers: int = HfArg(default=1, help="Processes; the output is the same for any number.")

    unrecorded: ClassVar[tuple[str, ...]] = (*StageArguments.unrecorded, "corpus", "workers")

    def __post_init__(self) -> None:
        at_least = {"sentences_per_chunk": 3, "max_sentence_chars": 1, "max_document_chars": 1000, "shard_chars": 1}
        for name, least in (at_least | {"workers": 1}).items():
            if getattr(self, name) < least:
                raise UserError(f"--{name} must be at least {least}, got {getattr(self, name)}")
        for location in self.corpus:
            if Path(self.output).resolve().is_relative_to(Path(location).resolve()):
                raise UserError(
                    f"--output {self.output!r} lies inside the corpus {location!r} and would become part of it"
                )
        if not re.fullmatch("[a-z]{2,3}", self.language):  # the splitter takes any word, and means English by it
            raise UserError(f"--language must be a code of two or three letters, such as en, got {self.language!r}")
        if not 0 <= self.held_out < 1:
            raise UserError(f"--held_out must be at least 0 and below 1, got {self.held_out}")

    @property
    def kept_columns(self) -> list[str]:
        return [name.strip() for name in self.keep_columns.split(",") if name.strip()]


@dataclass(frozen=True)
class Shard:
    """Documents for one parquet file, and what was passed over on the way to the last of them."""

    number: int
    documents: Sequence[Document]
    passed_over: Counter[str]

    @property
    def name(self) -> str:
        return f"data/chunks-{self.number:05d}.parquet"


@dataclass(frozen=True)
class _Task:
    path: Path
    documents: Sequence[Document]
    arguments: ChunkArguments


def run(arguments: ChunkArguments) -> dict[str, Any]:
    """Run the stage; returns the counts that stage.json records."""
    columns = Columns(arguments.text_column, arguments.id_column, arguments.kept_columns)
    corpora = [
        Corpus(location, columns, arguments.max_document_chars, arguments.config_name, arguments.split)
        for location in arguments.corpus
    ]
    if repeated := [name for name, count in Counter(corpus.name for corpus in corpora).items() if count > 1]:
        raise UserError(f"two corpora are called {repeated[0]!r}, and their documents would share ids; rename one")
    fingerprints = {"corpus": [corpus.fingerprint() for corpus in corpora]}
    with Stage("chunk", arguments, fingerprints, packages=("sentencex", "pyarrow")) as stage:
        if stage.finished:
            counts: dict[str, Any] = read_stage(stage.output)["counts"]
            return counts
        counts = _chunk(stage, corpora, arguments)
        stage.finish(counts)
        return counts


def _chunk(stage: Stage, corpora: Sequence[Corpus], arguments: ChunkArguments) -> dict[str, Any]:
    totals: Counter[str] = Counter()

    def tasks() -> Iterator[_Task]:
        for shard in _shards(corpora, arguments):
            totals.update(shard.passed_over)
            path = stage.folder / shard.name
            if path.exists():
                totals.update(_counts_of(path))
            elif shard.documents:
                yield _Task(path, shard.documents, arguments)

    total_bytes = sum(corpus.total_bytes for corpus in corpora)
    with tqdm(total=total_bytes or None, unit="B", unit_scale=True, desc="chunk", disable=None) as bar:
        for counts in ordered_map(_write_shard, tasks(), arguments.workers):
            totals.update(counts)
            bar.update(sum(corpus.bytes_read for corpus in corpora) - bar.n)
    return _report(totals)


def _report(totals: Counter[str]) -> dict[str, Any]:
    """Totals in the order and shape that stage.json and the screen show; refuses a corpus that gave nothing."""
    skipped = {name.removeprefix("skipped: "): n for name, n in sorted(totals.items()) if name.startswith("skipped: ")}
    kept = totals["documents_kept"]
    if not totals["contexts"]:
        reasons = ", ".join(f"{number} {reason}" for reason, number in skipped.items()) or "none were found"
        raise UserError(
            f"no context could be made of {totals['documents_read']} documents ({reasons}); "
            "a context needs a document of three sentences or more"
        )
    return {
        "documents_read": totals["documents_read"],
        "documents_kept": kept,
        "documents_duplicate": totals["documents_duplicate"],
        "documents_skipped": skipped,
        "documents_held_out": totals["documents_held_out"],
        "chunks": {split: totals[f"chunks_{split}"] for split in SPLITS},
        "sentences": {split: totals[f"sentences_{split}"] for split in SPLITS},
        "sentences_without_context": totals["sentences_without_context"],
        "sentences_too_long": totals["sentences_too_long"],
        "contexts": totals["contexts"],
        "unprintable_characters_replaced": totals["unprintable"],
    }


def _shards(corpora: Iterable[Corpus], arguments: ChunkArguments) -> Iterator[Shard]:
    number, documents, size, passed_over = 0, [], 0, Counter()  # type: int, list[Document], int, Counter[str]
    seen = _Seen()
    for item in (item for corpus in corpora for item in corpus):
        passed_over["documents_read"] += 1
        if isinstance(item, Flaw):
            if not arguments.skip_bad:
                raise UserError(f"{item.place}: {item.message}. Mend it, or pass over such documents with --skip-bad")
            passed_over[f"skipped: {item.reason}"] += 1
        elif not item.text.strip():
            passed_over["skipped: empty"] += 1
        elif seen.text_before(item):
            passed_over["documents_duplicate"] += 1
        else:
            seen.refuse_id_before(item)
            documents.append(item)
            size += len(item.text)
            if size >= arguments.shard_chars:
                yield Shard(number, documents, passed_over)
                number, documents, size, passed_over = number + 1, [], 0, Counter()
    yield Shard(number, documents, passed_over)


class _Seen:
    """Hashes of texts and ids, in a temporary data base that leaves memory when it grows."""

    def __init__(self) -> None:
        self._table = sqlite3.connect("", isolation_level=None)
        self._table.execute("PRAGMA journal_mode = OFF")
        self._table.execute("CREATE TABLE seen (key INTEGER PRIMARY KEY)")

    def _before(self, text: str, kind: int) -> bool:
        signed = xxhash.xxh3_64_intdigest(text.encode("utf-8", "replace"), kind) - (1 << 63)
        return self._table.execute("INSERT OR IGNORE INTO seen VALUES (?)", (signed,)).rowcount == 0

    def text_before(self, document: Document) -> bool:
        return self._before(document.text.strip(), 0)

    def refuse_id_before(self, document: Document) -> None:
        if self._before(document.doc_id, 1):
            raise UserError(
                f"two documents have the id {document.doc_id!r}; name a column of unique ids with --id_column, "
                "or one that does not exist to number the rows"
            )


def split_of(doc_id: str, held_out: float) -> str:
    """A document's split: fixed by its id alone, so it never moves when others come or go."""
    return "held_out" if xxhash.xxh3_64_intdigest(doc_id.encode()) < held_out * 2**64 else "train"


def _write_shard(task: _Task) -> Counter[str]:
    arguments = task.arguments
    rows: list[dict[str, Any]] = []
    counts: Counter[str] = Counter()
    for document in task.documents:
        rows.extend(_chunk_document(document, arguments, counts))
    schema = pa.schema(
        [(name, pa.string()) for name in ("chunk_id", "doc_id", "source", "split")]
        + [("sentences", pa.list_(pa.string()))]
        + [(name, pa.string()) for name in arguments.kept_columns],
        metadata={_COUNTS_KEY: json.dumps(counts, sort_keys=True).encode()},
    )
    with writing(task.path) as temporary:
        pq.write_table(pa.Table.from_pylist(rows, schema), temporary, compression="zstd")
    return counts


def _chunk_document(document: Document, arguments: ChunkArguments, counts: Counter[str]) -> list[dict[str, Any]]:
    parts = split_document(document.text, arguments.language, arguments.max_sentence_chars)
    split = split_of(document.doc_id, arguments.held_out)
    chunks = [chunk for run in parts.runs for chunk in even_chunks(run, arguments.sentences_per_chunk)]
    useful = [chunk for chunk in chunks if context_positions(len(chunk))]
    counts["sentences_too_long"] += parts.too_long
    counts["unprintable"] += parts.unprintable
    counts["sentences_without_context"] += sum(len(chunk) for chunk in chunks if chunk not in useful)
    counts["documents_kept" if useful else "skipped: too short"] += 1
    counts["documents_held_out"] += bool(useful) and split == "held_out"
    counts[f"chunks_{split}"] += len(useful)
    counts[f"sentences_{split}"] += sum(map(len, useful))
    counts["contexts"] += sum(len(chunk) - 2 for chunk in useful)
    about = {"doc_id": document.doc_id, "source": document.source, "split": split} | document.kept
    return [{"chunk_id": f"{document.doc_id}#{i}", "sentences": chunk} | about for i, chunk in enumerate(useful)]


def _counts_of(path: Path) -> dict[str, int]:
    counts: dict[str, int] = json.loads(pq.read_schema(path).metadata[_COUNTS_KEY])
    return counts
