"""Chunks (consecutive sentences of one document) and contexts (a position in a chunk with the sentence taken out): the
data that every later stage reads."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import datasets_cache
from ctxsim_hf.runtime.record import describe_stage, open_stage, read_stage

if TYPE_CHECKING:
    from datasets import Dataset

CHUNK_SPLITS = ("train", "held_out")
CHUNK_COLUMNS = ("chunk_id", "doc_id", "source", "split", "sentences")
SHARD_PATTERN = "data/chunks-*.parquet"
COMMANDS = ("chunk", "sample")  # the commands that make folders of chunks


@dataclass(frozen=True, slots=True)
class Context:
    """A position in a chunk, with at least one and up to a given number of sentences on each side."""

    chunk_id: str
    position: int  # of the sentence in its chunk
    left: tuple[str, ...]
    sentence: str  # the one that was taken out
    right: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive sentences of one document."""

    chunk_id: str
    doc_id: str
    source: str
    split: str
    sentences: tuple[str, ...]

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Make a chunk from a row of `read_chunks`; columns kept by the user are ignored."""
        return cls(row["chunk_id"], row["doc_id"], row["source"], row["split"], tuple(row["sentences"]))

    def contexts(self, width: int) -> Iterator[Context]:
        """Yield the contexts of the chunk, with up to `width` sentences on each side."""
        for position in context_positions(len(self.sentences)):
            yield self.context_at(position, width)

    def context_at(self, position: int, width: int) -> Context:
        """Return the context at a position, with up to `width` sentences on each side."""
        left, right = self.sentences[max(0, position - width) : position], self.sentences[position + 1 :][:width]
        return Context(self.chunk_id, position, left, self.sentences[position], right)


def context_positions(num_sentences: int) -> range:
    """Return the positions of a chunk's contexts: every sentence but the first and the last has two sides."""
    return range(1, num_sentences - 1)


def read_chunks(folder: str | Path, split: str | None = None) -> "Dataset":
    """Return the chunks in a folder made by `ctxsim chunk`, as a memory-mapped dataset.

    Args:
        folder (`str` or `Path`): The folder.
        split (`str`, *optional*): `train` or `held_out`; None gives both.
    """
    from datasets import Dataset  # takes a second to import

    if split is not None and split not in CHUNK_SPLITS:
        raise UserError(f"chunks have no split {split!r}; expected one of {', '.join(CHUNK_SPLITS)}, or None for both")
    check_chunks(folder, split)
    shards = [str(path) for path in sorted(Path(folder).glob(SHARD_PATTERN))]
    filters = [("split", "=", split)] if split else None
    return Dataset.from_parquet(shards, filters=filters, cache_dir=datasets_cache())


def check_chunks(folder: str | Path, split: str | None = None) -> None:
    """Refuse a folder that `ctxsim chunk` did not finish, that is damaged, or that has no chunk in the split."""
    record = open_stage(folder, *COMMANDS)
    if split is not None and not record["counts"]["chunks"][split]:
        raise UserError(
            f"{str(folder)!r} has no {split} chunks; add documents, or use ctxsim chunk with another --held-out share"
        )


def describe_chunks(folder: str | Path) -> dict[str, Any]:
    """Describe a folder of chunks for the stage.json of a stage that reads it."""
    return describe_stage(folder, *COMMANDS)


def describe_chunking(folder: str | Path) -> dict[str, Any]:
    """Return the command and the arguments that cut a folder of chunks, so that others can be cut alike."""
    record = read_stage(folder, *COMMANDS)
    return {name: record[name] for name in ("command", "arguments")}


def even_chunks(sentences: Sequence[str], max_sentences: int) -> Iterator[Sequence[str]]:
    """Cut sentences into the fewest chunks of at most `max_sentences`, as evenly as possible: 11 sentences give 6 and
    5, since 10 and 1 would leave one sentence without a context."""
    number = -(-len(sentences) // max_sentences)
    for index in range(number):
        yield sentences[len(sentences) * index // number : len(sentences) * (index + 1) // number]
