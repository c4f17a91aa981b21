"""The contexts of a corpus, made ready to be searched: what `ctxsim index` writes, opened at once.

A context is the index of the sentence taken out, among the sentences of the train chunks. TF-IDF finds chunks for a
sentence; the discriminator's part of each context (see its model) ranks their contexts. A part is kept as the sum of
two half-precision numbers: ranking reads the first alone, half the bytes; together they are as good as single
precision, for contexts that reach the fit score.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
import xxhash

from ctxsim_hf.origin.fit_score import ContextTokens
from ctxsim_hf.origin.tfidf_index import TfidfIndex
from ctxsim_hf.text.chunks import Chunk
from ctxsim_hf.text.tokenized import TokenizedChunks, open_tokenized

TFIDF, TOKENS, CHUNKS = "tfidf", "tokens", "chunks.arrow"
SENTENCE_KEYS, PARTS, PARTS_REST, NORMALISERS = (
    "sentence_keys.npy",
    "context_parts.npy",
    "context_parts_rest.npy",
    "normalisers.npy",
)


def sentence_key(sentence: str) -> int:
    """Equal for sentences that differ in nothing but case, punctuation and white space."""
    return xxhash.xxh3_64_intdigest("".join(c for c in sentence.casefold() if c.isalnum()).encode())


@dataclass(frozen=True)
class ContextIndex:
    tfidf: TfidfIndex
    chunks: TokenizedChunks
    table: pa.Table  # chunk_id, doc_id, source, split, sentences: the texts
    sentence_keys: np.ndarray  # (sentences,)
    parts: np.ndarray  # (contexts, part), half precision
    parts_rest: np.ndarray  # (contexts, part), half precision: what `parts` lost
    normalisers: np.ndarray | None  # (contexts,): of the light generator's question `sentence`
    width: int

    @classmethod
    def open(cls, folder: str | Path, width: int) -> "ContextIndex":
        folder = Path(folder)

        def array(name: str) -> np.ndarray:
            return np.load(folder / name, mmap_mode="r", allow_pickle=False)

        return cls(
            tfidf=TfidfIndex.open(folder / TFIDF),
            chunks=open_tokenized(folder / TOKENS),
            table=pa.ipc.open_file(pa.memory_map(str(folder / CHUNKS))).read_all(),
            sentence_keys=array(SENTENCE_KEYS),
            parts=array(PARTS),
            parts_rest=array(PARTS_REST),
            normalisers=array(NORMALISERS) if (folder / NORMALISERS).exists() else None,
            width=width,
        )

    @cached_property
    def num_contexts(self) -> int:
        return len(self.parts)

    def rows(self, contexts: np.ndarray) -> np.ndarray:
        """Where the contexts stand in the arrays: the first and the last sentence of a chunk are none."""
        return contexts - 2 * self.chunks.chunks_of(contexts) - 1

    def contexts_at(self, rows: np.ndarray) -> np.ndarray:
        """The contexts that stand there: the other way round."""
        chunk_rows = self.chunks.chunk_starts - 2 * np.arange(len(self.chunks.chunk_starts))
        return rows + 2 * (np.searchsorted(chunk_rows, rows, side="right") - 1) + 1

    def without(self, sentence: str, contexts: np.ndarray) -> np.ndarray:
        """The contexts that do not hold the sentence itself on a side."""
        left, right = self.chunks.neighbours(contexts, self.width)
        sides = np.concatenate([left, right], axis=1)
        same = (self.sentence_keys[sides] == np.uint64(sentence_key(sentence))) & (sides >= 0)
        return contexts[~same.any(1)]

    def screened_contexts(self, chunks: np.ndarray) -> np.ndarray:
        """All contexts of these chunks."""
        return self.chunks.contexts_of(np.asarray(chunks, dtype=np.int64))

    def tokens(self, contexts: np.ndarray) -> ContextTokens:
        """The contexts for a scorer, with what is stored of them."""
        rows = self.rows(contexts)
        left, right = self.chunks.neighbours(contexts, self.width)
        parts = self.parts[rows].astype(np.float32) + self.parts_rest[rows].astype(np.float32)
        return ContextTokens(
            self.chunks,
            left,
            right,
            discriminator_parts=torch.from_numpy(parts),
            normalisers=None if self.normalisers is None else torch.from_numpy(self.normalisers[rows]),
        )

    def text(self, contexts: np.ndarray) -> list[tuple[Chunk, int]]:
        """For each context its chunk and the position of the sentence taken out."""
        numbers = self.chunks.chunks_of(contexts)
        # Not `take`, which would copy the whole table.
        rows = [self.table.slice(number, 1).to_pylist()[0] for number in numbers.tolist()]
        positions = contexts - self.chunks.chunk_starts[numbers]
        return [(Chunk.from_row(row), int(position)) for row, position in zip(rows, positions, strict=True)]

    def sentences(self, numbers: Sequence[int] | np.ndarray) -> list[str]:
        """Texts of sentences."""
        return [chunk.sentences[position] for chunk, position in self.text(np.asarray(numbers))]
