"""Chunks + a tokenizer -> flat, memory-mapped arrays of token ids, the form all training and scoring reads.

A sentence is an index into `sentence_starts`; a context is the index of the sentence taken out, since its neighbours
in the chunk are its neighbours in the array. The arrays are kept in the Hugging Face cache, named by a digest of what
they were made from, so every stage after the first finds them there.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import filelock
import numpy as np
import pyarrow.parquet as pq
import xxhash
from huggingface_hub.constants import HF_HOME
from tqdm import tqdm

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import digest_file
from ctxsim_hf.text.chunks import SHARD_PATTERN, check_chunks, describe_chunks

if TYPE_CHECKING:
    from transformers import TokenizersBackend

FORMAT = 1  # part of the digest: a change of layout must not meet old arrays
ARRAYS = ("tokens", "sentence_starts", "chunk_starts", "document_starts")
SENTENCES_PER_BATCH = 10_000


@dataclass(frozen=True)
class TokenizedSentences:
    """Sentences without special tokens."""

    tokens: np.ndarray  # (tokens,) ids of all sentences, one after another
    sentence_starts: np.ndarray  # (sentences + 1,) into tokens

    def __len__(self) -> int:
        return len(self.sentence_starts) - 1

    @cached_property
    def lengths(self) -> np.ndarray:
        """Tokens of each sentence."""
        return np.diff(self.sentence_starts).astype(np.int32)

    def pick(self, sentences: np.ndarray) -> "TokenizedSentences":
        """These sentences alone, in this order, in memory."""
        firsts = self.sentence_starts[sentences]
        starts = _starts(self.sentence_starts[sentences + 1] - firsts)
        places = np.repeat(firsts - starts[:-1], np.diff(starts)) + np.arange(starts[-1])
        return TokenizedSentences(self.tokens[places], starts)

    def followed_by(self, others: "TokenizedSentences") -> "TokenizedSentences":
        starts = np.concatenate([self.sentence_starts, self.sentence_starts[-1] + others.sentence_starts[1:]])
        return TokenizedSentences(np.concatenate([self.tokens, others.tokens]), starts)

    def padded(self, sentences: np.ndarray, pad: int, max_tokens: int, end: int | None = None) -> np.ndarray:
        """Token ids of sentences as one matrix, cut after `max_tokens` and padded on the right; with `end`, that id
        closes each sentence."""
        firsts = self.sentence_starts[sentences]
        lengths = np.minimum(self.sentence_starts[sentences + 1] - firsts, max_tokens)
        extra = 0 if end is None else 1
        matrix = np.full((len(sentences), max(1, int(lengths.max(initial=0)) + extra)), pad, dtype=np.int64)
        columns = np.arange(matrix.shape[1])
        real = columns < lengths[:, None]
        places = firsts[:, None] + columns
        matrix[real] = self.tokens[places[real]]
        if end is not None:
            matrix[np.arange(len(sentences)), lengths] = end
        return matrix


@dataclass(frozen=True)
class TokenizedChunks(TokenizedSentences):
    """Sentences of one split."""

    chunk_starts: np.ndarray  # (chunks + 1,) into sentences
    document_starts: np.ndarray  # (documents + 1,) into sentences

    @property
    def num_chunks(self) -> int:
        return len(self.chunk_starts) - 1

    @property
    def num_contexts(self) -> int:
        """Contexts of all chunks: every sentence but the first and the last of each."""
        return len(self) - 2 * self.num_chunks

    def context_rows(self, contexts: np.ndarray) -> np.ndarray:
        """Number contexts through all chunks, without the sentences that are none."""
        return contexts - 2 * self.chunks_of(contexts) - 1

    def contexts_at(self, rows: np.ndarray) -> np.ndarray:
        """Return the contexts that have these numbers: the inverse of `context_rows`."""
        first_rows = self.chunk_starts - 2 * np.arange(len(self.chunk_starts))
        return rows + 2 * (np.searchsorted(first_rows, rows, side="right") - 1) + 1

    def context_ranges(self, chunks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the first context of each of these chunks, and the first sentence after its last context."""
        return self.chunk_starts[chunks] + 1, self.chunk_starts[chunks + 1] - 1

    def contexts_of(self, chunks: np.ndarray) -> np.ndarray:
        """The contexts of these chunks, in order: every sentence but the first and the last of each."""
        firsts, ends = self.context_ranges(chunks)
        counts = ends - firsts
        before = np.repeat(np.cumsum(counts) - counts, counts)
        return np.repeat(firsts, counts) + np.arange(counts.sum()) - before

    def neighbours(self, contexts: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Left and right sentences of each context, twice (contexts, width), nearest first, -1 beyond the chunk."""
        chunk = self.chunks_of(contexts)
        steps = np.arange(1, width + 1)
        left, right = contexts[:, None] - steps, contexts[:, None] + steps
        left[left < self.chunk_starts[chunk][:, None]] = -1
        right[right >= self.chunk_starts[chunk + 1][:, None]] = -1
        return left, right

    def chunks_of(self, sentences: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.chunk_starts, sentences, side="right") - 1

    def documents_of(self, sentences: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.document_starts, sentences, side="right") - 1


def tokenize_sentences(tokenizer: "TokenizersBackend", sentences: Sequence[str]) -> TokenizedSentences:
    """Any sentences, in memory."""
    rows = [np.array(row, dtype=np.int64) for batch in _encode(tokenizer, list(sentences)) for row in batch]
    tokens = np.concatenate([np.zeros(0, dtype=np.int64), *rows])
    return TokenizedSentences(tokens, _starts(np.array([len(row) for row in rows], dtype=np.int64)))


def tokenize_chunks(chunks: str | Path, tokenizer_folder: str | Path, split: str) -> TokenizedChunks:
    """The tokenised sentences of one split, from the cache or made now."""
    check_chunks(chunks, split)
    tokenizer_file = Path(tokenizer_folder) / "tokenizer.json"
    if not tokenizer_file.exists():
        raise UserError(f"no tokenizer in {str(tokenizer_folder)!r}: expected a file tokenizer.json there")
    made_from = [FORMAT, describe_chunks(chunks)["xxh3_128"], digest_file(tokenizer_file), split]
    folder = Path(HF_HOME) / "ctxsim" / xxhash.xxh3_128_hexdigest(json.dumps(made_from).encode())
    folder.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(str(folder) + ".lock"):
        if not folder.exists():
            _build(folder, Path(chunks), tokenizer_folder, split)
    return open_tokenized(folder)


def open_tokenized(folder: Path) -> TokenizedChunks:
    """The arrays in a folder, memory-mapped."""
    return TokenizedChunks(*(np.load(folder / f"{name}.npy", mmap_mode="r") for name in ARRAYS))


def _build(folder: Path, chunks: Path, tokenizer_folder: str | Path, split: str) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(tokenizer_folder))
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    dtype = np.dtype(np.uint16 if len(tokenizer) <= 1 << 16 else np.uint32)
    sentence_lengths: list[np.ndarray] = []
    chunk_lengths: list[np.ndarray] = []
    documents: list[int] = []  # sentences of each
    last_document = None
    with (partial / "tokens.bin").open("wb") as file:
        for table in _shards(chunks, split):
            for doc_id, sentences in zip(table["doc_id"], table["sentences"], strict=True):
                if doc_id != last_document:
                    documents.append(0)
                documents[-1] += len(sentences)
                last_document = doc_id
            chunk_lengths.append(np.array([len(sentences) for sentences in table["sentences"]], dtype=np.int64))
            for ids in _encode(tokenizer, [s for sentences in table["sentences"] for s in sentences]):
                sentence_lengths.append(np.array([len(row) for row in ids], dtype=np.int64))
                file.write(np.concatenate([np.array(row, dtype=dtype) for row in ids]).tobytes())
    np.save(partial / "sentence_starts.npy", _starts(np.concatenate(sentence_lengths)))
    np.save(partial / "chunk_starts.npy", _starts(np.concatenate(chunk_lengths)))
    np.save(partial / "document_starts.npy", _starts(np.array(documents, dtype=np.int64)))
    raw = np.memmap(partial / "tokens.bin", dtype=dtype, mode="r")
    np.lib.format.open_memmap(partial / "tokens.npy", mode="w+", dtype=dtype, shape=raw.shape)[:] = raw
    del raw
    (partial / "tokens.bin").unlink()
    partial.rename(folder)


def _shards(chunks: Path, split: str) -> Iterator[dict[str, list[Any]]]:
    for shard in tqdm(sorted(chunks.glob(SHARD_PATTERN)), desc=f"tokenize {split}", unit="shard", disable=None):
        table = pq.read_table(shard, columns=["doc_id", "sentences"], filters=[("split", "=", split)])
        if table.num_rows:
            yield table.to_pydict()


def _encode(tokenizer: "TokenizersBackend", sentences: list[str]) -> Iterator[list[list[int]]]:
    for start in range(0, len(sentences), SENTENCES_PER_BATCH):
        batch = sentences[start : start + SENTENCES_PER_BATCH]
        yield tokenizer(batch, add_special_tokens=False, return_attention_mask=False, verbose=False)["input_ids"]


def _starts(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
