"""Write a segment of an origin: of a folder of chunks, or of other segments."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from ctxsim_hf.origin.context_arrays import ContextArrays
from ctxsim_hf.origin.context_index import (
    CHUNKS,
    SENTENCE_KEYS,
    STORED,
    TFIDF,
    TOKENS,
    Rows,
    map_texts,
    open_joined,
    open_texts,
    sentence_key,
)
from ctxsim_hf.origin.joined_arrays import JoinedArray
from ctxsim_hf.origin.layout import TOKENIZER
from ctxsim_hf.origin.tfidf_build import build_segment
from ctxsim_hf.origin.tfidf_merge import merge_tfidf
from ctxsim_hf.origin.tfidf_segment import TfidfSegment, map_array
from ctxsim_hf.runtime.blocks import Executor, execute
from ctxsim_hf.runtime.files import writing
from ctxsim_hf.text.chunks import CHUNK_COLUMNS, SHARD_PATTERN
from ctxsim_hf.text.tokenized import ARRAYS, open_tokenized, tokenize_chunks


def write_segment(
    folder: Path, origin: Path, chunks: Path, ngrams: str, tokenizing: Executor | None, storing: Executor
) -> None:
    """Write the parts of a segment that a run before has not written yet.

    Args:
        folder (`Path`): The segment.
        origin (`Path`): The origin, with tokenizer and context models.
        chunks (`Path`): Folder made by `ctxsim chunk`.
        ngrams (`str`): Terms of TF-IDF.
        tokenizing (`Executor`, *optional*): Tokenises the chunks. None does it in this process.
        storing (`Executor`): Computes what context models store.
    """
    tokenized = tokenize_chunks(chunks, origin / TOKENIZER, "train", executor=tokenizing)
    for name in ARRAYS:
        _save_array(folder / TOKENS / f"{name}.npy", getattr(tokenized, name))
    if not (folder / CHUNKS).exists():
        shards = sorted(chunks.glob(SHARD_PATTERN))
        schema = pq.read_schema(shards[0])
        schema = pa.schema([schema.field(name) for name in CHUNK_COLUMNS])
        train = [("split", "=", "train")]
        tables = (pq.read_table(shard, columns=list(CHUNK_COLUMNS), filters=train).cast(schema) for shard in shards)
        _write_texts(folder / CHUNKS, schema, tqdm(tables, "texts", len(shards), unit="shard", disable=None))
    texts = map_texts(folder)
    if not (folder / TFIDF).exists():
        build_segment(sentences_of(texts), folder / TFIDF, ngrams=ngrams)
    if not (folder / SENTENCE_KEYS).exists():
        keys = (sentence_key(sentence) for row in sentences_of(texts) for sentence in row)
        _save_array(folder / SENTENCE_KEYS, np.fromiter(keys, np.uint64, len(tokenized)))
    execute(ContextArrays(folder, origin), storing)


def merge_segments(folder: Path, segments: Sequence[Path], deleted: np.ndarray) -> None:
    """Write one segment of the documents of several; no context model is asked again.

    Args:
        folder (`Path`): The segment to write. Parts that a run before has written stay.
        segments (`Sequence[Path]`): The segments in order.
        deleted (`np.ndarray`): Chunks to leave out, numbered through these segments, ascending.
    """
    joined = open_joined(segments, deleted)
    tokenized, runs = joined.tokenized(), {SENTENCE_KEYS: joined.sentences}
    for name in ARRAYS:
        _save_array(folder / TOKENS / f"{name}.npy", getattr(tokenized, name))
    for path in sorted((segments[0] / STORED).glob("*/*.npy")):
        runs[path.relative_to(segments[0]).as_posix()] = joined.contexts
    for name, rows in runs.items():
        parts = [map_array(segment / name) for segment in segments]
        _save_array(folder / name, JoinedArray(parts, rows))
    if not (folder / CHUNKS).exists():
        texts = open_texts(segments, joined)
        _write_texts(folder / CHUNKS, texts.schema, iter([texts]))
    if not (folder / TFIDF).exists():
        merge_tfidf(folder / TFIDF, [TfidfSegment.open(segment / TFIDF) for segment in segments], deleted)


def sentences_of(texts: pa.Table) -> Iterator[list[str]]:
    """Yield the sentences of each chunk, read a block at a time."""
    for batch in texts.select(["sentences"]).to_batches(max_chunksize=1000):
        yield from batch.column(0).to_pylist()


def count_sentences(folder: Path) -> dict[str, int]:
    """Return the numbers of chunks, sentences and contexts of a segment."""
    chunks = open_tokenized(folder / TOKENS)
    return {"chunks": chunks.num_chunks, "sentences": len(chunks), "contexts": chunks.num_contexts}


def _write_texts(path: Path, schema: pa.Schema, tables: Iterator[pa.Table]) -> None:
    """Write chunks as one memory-mappable table."""
    with writing(path) as temporary, pa.ipc.new_file(str(temporary), schema) as writer:
        for table in tables:
            writer.write_table(table)


def _save_array(path: Path, array: Rows) -> None:
    if path.exists():
        return
    with writing(path) as temporary:
        target = np.lib.format.open_memmap(temporary, mode="w+", dtype=array.dtype, shape=array.shape)
        row = 0
        for piece in array.pieces() if isinstance(array, JoinedArray) else [array]:
            target[row : row + len(piece)] = piece
            row += len(piece)
        target.flush()
