"""Documents -> chunks, a stage: `ctxsim chunk`.

A first pass finds duplicates and plans shards of a few megabytes (see chunk_plan.py). Then every shard is a block:
running it reads its documents again, splits them into sentences and writes one parquet file. The bytes are therefore
the same for any executor, and a shard that is on disk already is not made again.
"""

import json
import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from ctxsim_hf.runtime.array_job import array_rank, run_as_rank
from ctxsim_hf.runtime.blocks import Executor, FileBlocks, LocalExecutor, execute
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import writing
from ctxsim_hf.runtime.record import read_counts
from ctxsim_hf.runtime.stage import Stage
from ctxsim_hf.text.chunk_arguments import ChunkArguments
from ctxsim_hf.text.chunk_plan import ChunkPlan, Shard, write_plan
from ctxsim_hf.text.chunks import CHUNK_COLUMNS, CHUNK_SPLITS, context_positions, even_chunks
from ctxsim_hf.text.pipes import keep_pipes
from ctxsim_hf.text.reading import Corpus, Document, Reader
from ctxsim_hf.text.sentences import split_document

logger = logging.getLogger(__name__)

PLAN_FILE = "plan.arrow"
_COUNTS_KEY = b"ctxsim_counts"


def run(arguments: ChunkArguments, executor: Executor | None = None) -> dict[str, Any] | str:
    """Run the stage and return the counts that stage.json records, or a line that says what other tasks have to do.

    Args:
        arguments (`ChunkArguments`): What to read and how to cut it.
        executor (`Executor`, *optional*): Makes the shards. None uses `arguments.workers` processes on this machine.
    """
    with keep_pipes(arguments.corpus) as corpus:
        return _run(replace(arguments, corpus=corpus), executor)


def _run(arguments: ChunkArguments, executor: Executor | None) -> dict[str, Any] | str:
    fingerprints = {"corpus": [corpus.fingerprint() for corpus in arguments.corpora()]}
    stage = Stage("chunk", arguments, fingerprints, packages=("sentencex", "pyarrow"), wait=arguments.array)
    if arguments.array:
        return run_as_rank(stage, lambda folder: ChunkBlocks(folder, arguments), array_rank())
    with stage:
        if not stage.finished:
            work = ChunkBlocks(stage.folder, arguments)
            stage.finish(execute(work, executor or LocalExecutor(arguments.workers, "chunk")))
        return read_counts(stage.output)


@dataclass
class ChunkBlocks(FileBlocks):
    """Chunking in blocks, one parquet file for each shard of the plan."""

    arguments: ChunkArguments

    @cached_property
    def _corpora(self) -> list[Corpus]:
        return self.arguments.corpora()

    @cached_property
    def _plan(self) -> ChunkPlan:
        path = self.folder / PLAN_FILE
        if not path.exists():
            write_plan(path, self._corpora, self.arguments.shard_chars, self.arguments.skip_bad)
        return ChunkPlan(path)

    @cached_property
    def _is_one_document(self) -> bool:
        """Whether the corpus is one document in parts; with no other document, some parts are held out."""
        whole, parts = (
            sum(shard.counts[name] for shard in self._plan) for name in ("documents_whole", "document_parts")
        )
        return whole == 1 < parts

    @cached_property
    def _reader(self) -> Reader:
        """Keep the file open from block to block: a compressed file can only be read from its start."""
        return Reader(self._corpora)

    def blocks(self) -> list[str]:
        number = len(self._plan)
        return [f"data/chunks-{i:05d}.parquet" for i in range(number - self._plan[number - 1].is_empty)]

    def run_block(self, name: str) -> None:
        number = int(name.removeprefix("data/chunks-").removesuffix(".parquet"))
        rows: list[dict[str, Any]] = []
        counts: Counter[str] = Counter()
        for document in self._documents(self._plan[number]):
            held_out_by = document.doc_id if self._is_one_document else document.whole_id
            split = split_of(held_out_by, self.arguments.held_out)
            rows.extend(_chunk_document(document, split, self.arguments, counts))
        columns = [*CHUNK_COLUMNS, *self.arguments.kept_columns]
        types = {"sentences": pa.list_(pa.string())}
        schema = pa.schema(
            [(column, types.get(column, pa.string())) for column in columns],
            metadata={_COUNTS_KEY: json.dumps(counts, sort_keys=True).encode()},
        )
        with writing(self.folder / name) as temporary:
            pq.write_table(pa.Table.from_pylist(rows, schema), temporary, compression="zstd")

    def _documents(self, shard: Shard) -> Iterator[Document]:
        self._reader.seek(shard.start)
        left_out = set(shard.left_out)
        for number in range(shard.documents):
            _, document = next(self._reader, (None, None))
            if number in left_out:
                continue
            if not isinstance(document, Document):
                raise UserError("the corpus changed while it was read; start anew with --overwrite")
            yield document

    def merge(self) -> dict[str, Any]:
        """Return the counts of all shards, and remove the plan."""
        totals: Counter[str] = Counter()
        for shard in self._plan:
            totals.update(shard.counts)
        for name in self.blocks():
            totals.update(json.loads(pq.read_schema(self.folder / name).metadata[_COUNTS_KEY]))
        counts = _report(totals)
        if self._is_one_document and counts["documents_held_out"]:
            counts["parts_of_one_document_held_out"] = totals["documents_held_out"]
            logger.warning(
                "the corpus is one document, so parts of it are held out: figures on them are not on another document"
            )
        for path in self.folder.glob(f"*{PLAN_FILE}*"):  # also temporary files of a process that was killed
            path.unlink()
        return counts


def _report(totals: Counter[str]) -> dict[str, Any]:
    """Return totals in the order and shape that stage.json and the screen show; refuse a corpus that gave nothing."""
    skipped = {name.removeprefix("skipped: "): n for name, n in sorted(totals.items()) if name.startswith("skipped: ")}
    kept = totals["documents_kept"]
    if not totals["contexts"]:
        reasons = ", ".join(f"{number} {reason}" for reason, number in skipped.items()) or "none found"
        raise UserError(
            f"expected at least one context, but {totals['documents_read']} documents have none ({reasons}); "
            "a context needs a document of at least three sentences, split by the rules of --language"
        )
    return {
        "documents_read": totals["documents_read"],
        "documents_kept": kept,
        "documents_duplicate": totals["documents_duplicate"],
        "documents_skipped": skipped,
        "documents_held_out": totals["documents_held_out"],
        "chunks": {split: totals[f"chunks_{split}"] for split in CHUNK_SPLITS},
        "sentences": {split: totals[f"sentences_{split}"] for split in CHUNK_SPLITS},
        "sentences_without_context": totals["sentences_without_context"],
        "sentences_too_long": totals["sentences_too_long"],
        "contexts": totals["contexts"],
        "unprintable_characters_replaced": totals["unprintable"],
    }


def split_of(doc_id: str, held_out: float) -> str:
    """Return the split of a document, fixed by its id alone, so it never moves when others come or go, and all parts
    of a long one are on the same side."""
    return "held_out" if xxhash.xxh3_64_intdigest(doc_id.encode()) < held_out * 2**64 else "train"


def _chunk_document(
    document: Document, split: str, arguments: ChunkArguments, counts: Counter[str]
) -> list[dict[str, Any]]:
    parts = split_document(document.text, arguments.language, arguments.max_sentence_chars)
    chunks = [chunk for run in parts.runs for chunk in even_chunks(run, arguments.sentences_per_chunk)]
    useful = [chunk for chunk in chunks if context_positions(len(chunk))]
    counts["sentences_too_long"] += parts.too_long
    counts["unprintable"] += parts.unprintable
    counts["sentences_without_context"] += sum(len(chunk) for chunk in chunks if chunk not in useful)
    counts["documents_kept" if useful else "skipped: too short"] += 1
    counts["documents_held_out"] += bool(useful) and split == "held_out"
    counts[f"chunks_{split}"] += len(useful)
    counts[f"sentences_{split}"] += sum(map(len, useful))
    counts["contexts"] += sum(len(context_positions(len(chunk))) for chunk in useful)
    about = {"doc_id": document.doc_id, "source": document.source, "split": split} | document.kept
    return [{"chunk_id": f"{document.doc_id}#{i}", "sentences": chunk} | about for i, chunk in enumerate(useful)]
