"""Open the index of a corpus that `ctxsim index` writes: its contexts, memory-mapped.

A context is given by the number of the sentence taken out, among the sentences of the train chunks. TF-IDF finds
chunks for a sentence; what context models store of every context is kept under the name of the model and of the array.
Chunks, sentences and contexts are numbered through all segments, as if deleted documents had never been there.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import xxhash
from transformers import TokenizersBackend

from ctxsim_hf.context_models.contexts import Contexts
from ctxsim_hf.origin.joined_arrays import Joined, JoinedArray
from ctxsim_hf.origin.segments import Version
from ctxsim_hf.origin.tfidf_index import TfidfIndex
from ctxsim_hf.origin.tfidf_segment import map_array
from ctxsim_hf.text.chunks import Chunk, Context
from ctxsim_hf.text.tokenized import TokenizedChunks, TokenizedSentences, open_tokenized, tokenize_sentences

TFIDF, TOKENS, CHUNKS, STORED, SENTENCE_KEYS = "tfidf", "tokens", "chunks.arrow", "stored", "sentence_keys.npy"

Rows = np.ndarray | JoinedArray


def sentence_key(sentence: str) -> int:
    """Return a hash that is equal for sentences that differ in nothing but case, punctuation and white space."""
    return xxhash.xxh3_64_intdigest("".join(c for c in sentence.casefold() if c.isalnum()).encode())


@dataclass(frozen=True)
class IndexSentences:
    """The sentences of an index, with its own tokens; those of any other tokenizer are made on demand."""

    table: pa.Table
    chunks: TokenizedChunks
    tokenizer: TokenizersBackend

    def texts(self, numbers: np.ndarray) -> list[str]:
        """Return the texts of sentences."""
        chunks = self.chunks.chunks_of(numbers)
        rows = {chunk: self.table["sentences"][chunk].as_py() for chunk in set(chunks.tolist())}
        places = numbers - self.chunks.chunk_starts[chunks]
        return [rows[chunk][place] for chunk, place in zip(chunks.tolist(), places.tolist(), strict=True)]

    def tokens(self, numbers: np.ndarray, tokenizer: TokenizersBackend) -> TokenizedSentences:
        """Return the tokens of sentences."""
        if tokenizer is self.tokenizer:
            return self.chunks.pick(numbers)
        return tokenize_sentences(tokenizer, self.texts(numbers))


class StoredRows(Mapping[str, np.ndarray]):
    """Rows of the arrays stored for a model, read on demand."""

    def __init__(self, arrays: Mapping[str, Rows], rows: np.ndarray) -> None:
        self._arrays, self._rows = arrays, rows

    def __getitem__(self, name: str) -> np.ndarray:
        rows: np.ndarray = self._arrays[name][self._rows]
        return rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


@dataclass(frozen=True)
class IndexedContexts:
    """A selection of the contexts of an index."""

    index: "ContextIndex"
    numbers: np.ndarray

    def for_model(self, name: str) -> Contexts:
        """Return the contexts with what is stored for a model."""
        left, right = self.index.chunks.neighbours(self.numbers, self.index.width)
        rows = self.index.chunks.context_rows(self.numbers)
        return Contexts(self.index.sentences, left, right, StoredRows(self.index.stored.get(name, {}), rows))


@dataclass(frozen=True)
class ContextIndex:
    """The contexts of a corpus."""

    tfidf: TfidfIndex
    sentences: IndexSentences
    sentence_keys: Rows  # (sentences,)
    stored: Mapping[str, Mapping[str, Rows]]  # model -> name -> (contexts, ...)
    width: int

    @classmethod
    def open(cls, version: Version, tokenizer: TokenizersBackend, width: int) -> "ContextIndex":
        """Map the files of an index.

        Args:
            version (`Version`): The version of an origin to open.
            tokenizer (`TokenizersBackend`): The tokenizer that made its tokens.
            width (`int`): Number of sentences on each side of a context.
        """
        segments = version.segments
        joined = open_joined(segments, version.deleted)
        stored: dict[str, dict[str, Rows]] = {}
        for path in sorted((segments[0] / STORED).glob("*/*.npy")):
            parts = [map_array(segment / STORED / path.parent.name / path.name) for segment in segments]
            stored.setdefault(path.parent.name, {})[path.stem] = joined.join(parts, joined.contexts)
        keys = joined.join([map_array(segment / SENTENCE_KEYS) for segment in segments], joined.sentences)
        return cls(
            tfidf=TfidfIndex.open(version.folder, [segment / TFIDF for segment in segments], version.deleted),
            sentences=IndexSentences(open_texts(segments, joined), joined.tokenized(), tokenizer),
            sentence_keys=keys,
            stored=stored,
            width=width,
        )

    @property
    def chunks(self) -> TokenizedChunks:
        """The chunks as tokens."""
        return self.sentences.chunks

    @property
    def num_contexts(self) -> int:
        """The number of contexts."""
        return self.chunks.num_contexts

    def contexts(self, numbers: np.ndarray) -> IndexedContexts:
        """Return these contexts as a scorer takes them."""
        return IndexedContexts(self, numbers)

    def without(self, keys: np.ndarray, contexts: np.ndarray) -> np.ndarray:
        """Return the contexts that have no sentence with one of these keys on either side."""
        sides = np.concatenate(self.chunks.neighbours(contexts, self.width), axis=1)
        held = np.isin(self.sentence_keys[sides], keys) & (sides >= 0)
        return contexts[~held.any(1)]

    def screened_contexts(self, chunks: np.ndarray) -> np.ndarray:
        """Return all contexts of these chunks."""
        return self.chunks.contexts_of(np.asarray(chunks, dtype=np.int64))

    def chunk_of(self, sentences: np.ndarray) -> list[tuple[Chunk, int]]:
        """Return for each sentence its chunk and its position there."""
        numbers = self.chunks.chunks_of(sentences)
        # Not `take`, which would copy the whole table.
        rows = [self.sentences.table.slice(number, 1).to_pylist()[0] for number in numbers.tolist()]
        positions = sentences - self.chunks.chunk_starts[numbers]
        return [(Chunk.from_row(row), int(position)) for row, position in zip(rows, positions, strict=True)]

    def context_texts(self, contexts: np.ndarray) -> list[tuple[Context, Chunk]]:
        """Return contexts as texts, each with its chunk."""
        found = self.chunk_of(contexts)
        return [(chunk.context_at(position, self.width), chunk) for chunk, position in found]

    def texts(self, numbers: Sequence[int] | np.ndarray) -> list[str]:
        """Return the texts of sentences."""
        return self.sentences.texts(np.asarray(numbers))


def open_joined(segments: Sequence[Path], deleted: np.ndarray) -> Joined:
    """Open the tokens of segments, and how they become one sequence without the deleted chunks."""
    return Joined([open_tokenized(segment / TOKENS) for segment in segments], deleted)


def open_texts(segments: Sequence[Path], joined: Joined) -> pa.Table:
    """Map the texts of segments: chunk_id, doc_id, source, split, sentences."""
    tables = [map_texts(segment) for segment in segments]
    if joined.is_trivial:
        return tables[0]
    return pa.concat_tables([tables[number][rows] for number, rows in joined.chunks.slices()])


def map_texts(segment: Path) -> pa.Table:
    """Map the texts of a segment."""
    return pa.ipc.open_file(pa.memory_map(str(segment / CHUNKS))).read_all()
