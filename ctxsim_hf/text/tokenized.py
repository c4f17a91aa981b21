"""Chunks and a tokenizer -> flat, memory-mapped arrays of token ids, which all training and scoring reads.

A sentence is an index into `sentence_starts`. A context is the index of the sentence taken out, since its neighbours
in the chunk are its neighbours in the array. The arrays are kept in the Hugging Face cache, named by a digest of their
inputs, so every stage after the first finds them there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ctxsim_hf.runtime.blocks import Executor, LocalExecutor, execute
from ctxsim_hf.runtime.cache import cached_folder
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import digest_file
from ctxsim_hf.runtime.record import check_if_stage
from ctxsim_hf.text.chunks import check_chunks, describe_chunks
from ctxsim_hf.text.token_blocks import STARTS, TokenBlocks, encode_batches, starts_of

if TYPE_CHECKING:
    from transformers import TokenizersBackend

FORMAT = 1  # part of the digest, so that a new layout never reads old arrays
ARRAYS = ("tokens", *STARTS)


@dataclass(frozen=True)
class TokenizedSentences:
    """The token ids of sentences, without special tokens."""

    tokens: np.ndarray  # (tokens,) ids of all sentences, one after another
    sentence_starts: np.ndarray  # (sentences + 1,) into tokens

    def __len__(self) -> int:
        return len(self.sentence_starts) - 1

    @cached_property
    def lengths(self) -> np.ndarray:
        """Return the number of tokens of each sentence."""
        return np.diff(self.sentence_starts).astype(np.int32)

    def pick(self, sentences: np.ndarray) -> "TokenizedSentences":
        """Return the given sentences in the given order, in memory."""
        firsts = self.sentence_starts[sentences]
        starts = starts_of(self.sentence_starts[sentences + 1] - firsts)
        places = np.repeat(firsts - starts[:-1], np.diff(starts)) + np.arange(starts[-1])
        return TokenizedSentences(self.tokens[places], starts)

    def followed_by(self, others: "TokenizedSentences") -> "TokenizedSentences":
        """Return these sentences and then the others, in memory."""
        starts = np.concatenate([self.sentence_starts, self.sentence_starts[-1] + others.sentence_starts[1:]])
        return TokenizedSentences(np.concatenate([self.tokens, others.tokens]), starts)

    def padded(self, sentences: np.ndarray, pad: int, max_tokens: int, end: int | None = None) -> np.ndarray:
        """Return the token ids of sentences as one matrix, truncated to `max_tokens` and padded on the right. The id
        `end`, unless it is None, is appended to each sentence."""
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
    """The sentences of one split, and where its chunks and documents start."""

    chunk_starts: np.ndarray  # (chunks + 1,) into sentences
    document_starts: np.ndarray  # (documents + 1,) into sentences

    @property
    def num_chunks(self) -> int:
        return len(self.chunk_starts) - 1

    @property
    def num_contexts(self) -> int:
        """Return the number of contexts: every sentence of a chunk but the first and the last has one."""
        return len(self) - 2 * self.num_chunks

    def context_rows(self, contexts: np.ndarray) -> np.ndarray:
        """Return the numbers of contexts, counting contexts only, through all chunks."""
        return contexts - 2 * self.chunks_of(contexts) - 1

    def contexts_at(self, rows: np.ndarray) -> np.ndarray:
        """Return the contexts with the given numbers: the inverse of `context_rows`."""
        first_rows = self.chunk_starts - 2 * np.arange(len(self.chunk_starts))
        return rows + 2 * (np.searchsorted(first_rows, rows, side="right") - 1) + 1

    def context_ranges(self, chunks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the first context of each chunk, and the sentence after its last context."""
        return self.chunk_starts[chunks] + 1, self.chunk_starts[chunks + 1] - 1

    def contexts_of(self, chunks: np.ndarray) -> np.ndarray:
        """Return the contexts of the given chunks, in order: every sentence but the first and the last of each."""
        firsts, ends = self.context_ranges(chunks)
        counts = ends - firsts
        before = np.repeat(np.cumsum(counts) - counts, counts)
        return np.repeat(firsts, counts) + np.arange(counts.sum()) - before

    def neighbours(self, contexts: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the left and right sentences of each context, nearest first, -1 for none: both (contexts, width)."""
        chunk = self.chunks_of(contexts)
        steps = np.arange(1, width + 1)
        left, right = contexts[:, None] - steps, contexts[:, None] + steps
        left[left < self.chunk_starts[chunk][:, None]] = -1
        right[right >= self.chunk_starts[chunk + 1][:, None]] = -1
        return left, right

    def chunks_of(self, sentences: np.ndarray) -> np.ndarray:
        """Return the chunk of each sentence."""
        return np.searchsorted(self.chunk_starts, sentences, side="right") - 1

    def documents_of(self, sentences: np.ndarray) -> np.ndarray:
        """Return the document of each sentence."""
        return np.searchsorted(self.document_starts, sentences, side="right") - 1


def find_tokenizer_file(folder: str | Path) -> Path:
    """Return the tokenizer.json of a folder; refuse a folder without one, and a damaged one."""
    path = Path(folder) / "tokenizer.json"
    if not path.exists():
        raise UserError(f"expected a file tokenizer.json in {str(folder)!r}, but there is none")
    check_if_stage(folder)
    return path


def tokenize_sentences(tokenizer: "TokenizersBackend", sentences: Sequence[str]) -> TokenizedSentences:
    """Tokenise any sentences, in memory."""
    rows = [row for batch in encode_batches(tokenizer, list(sentences)) for row in batch]
    starts = starts_of(np.fromiter(map(len, rows), np.int64, len(rows)))
    return TokenizedSentences(np.fromiter(chain.from_iterable(rows), np.int64, int(starts[-1])), starts)


def tokenize_chunks(
    chunks: str | Path, tokenizer_folder: str | Path, split: str, workers: int = 1, executor: Executor | None = None
) -> TokenizedChunks:
    """Return the tokenised sentences of one split, from the cache or computed by `workers` processes.

    An executor, if there is one, computes them instead. The cache must then be on a file system that its tasks share.
    """
    check_chunks(chunks, split)
    tokenizer_file = find_tokenizer_file(tokenizer_folder)

    def build(folder: Path) -> None:
        blocks = folder.with_suffix(".blocks")  # beside the folder, so that finished blocks survive an interruption
        work = TokenBlocks(blocks, folder, Path(chunks), Path(tokenizer_folder), split)
        execute(work, executor or LocalExecutor(workers, f"tokenize {split}"))

    made_from = [FORMAT, describe_chunks(chunks)["xxh3_128"], digest_file(tokenizer_file), split]
    return open_tokenized(cached_folder("tokens", made_from, build))


def open_tokenized(folder: Path) -> TokenizedChunks:
    """Open the arrays in a folder, memory-mapped."""
    return TokenizedChunks(*(np.load(folder / f"{name}.npy", mmap_mode="r") for name in ARRAYS))
