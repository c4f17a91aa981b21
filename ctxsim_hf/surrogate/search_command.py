"""Add sentences to an index, and find those most similar to a query: `ctxsim search`."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import xxhash
from transformers.hf_argparser import HfArg

from ctxsim_hf.encoder.sentence_encoder import SentenceEncoder
from ctxsim_hf.runtime.arguments import Arguments
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.validation import Count
from ctxsim_hf.surrogate.search_index import SearchIndex, import_faiss
from ctxsim_hf.text.chunks import read_chunks
from ctxsim_hf.text.lines import open_lines


@dataclass(kw_only=True)
class SearchArguments(Arguments):
    """The arguments of `ctxsim search`."""

    index: str = HfArg(help="Folder of the index; the first --add or --chunks makes it.")
    surrogate: str | None = HfArg(default=None, help="Folder or id of the surrogate; by default the index's own.")
    add: str | None = HfArg(default=None, help="Add the lines of this text file; - is standard input.")
    chunks: str | None = HfArg(default=None, help="Add the sentences of this folder made by ctxsim chunk, each once.")
    top_k: Count = HfArg(default=10, help="Number of sentences to show.")
    num_processes: Count = HfArg(default=1, help="Number of processes that encode what is added.")
    query: list[str] = field(init=False, default_factory=list)

    positional: ClassVar[tuple[str, str]] = ("query", "What to look for, in quotes.")

    def check(self) -> None:
        """Refuse arguments that contradict each other."""
        if len(self.query) > 1 or not (self.query or self.add or self.chunks):
            raise UserError(f"expected one query in quotes, or something to add; got {len(self.query)} queries")
        if self.add and self.chunks:
            raise UserError("expected one of --add and --chunks, got both")


class ChunkSentences:
    """The sentences of a folder of chunks, each once."""

    def __init__(self, folder: str) -> None:
        self.chunks = read_chunks(folder)

    def __iter__(self) -> Iterator[str]:
        seen: set[int] = set()
        for chunk in self.chunks:
            for sentence in chunk["sentences"]:
                digest = xxhash.xxh3_64_intdigest(sentence.encode())
                if digest not in seen:
                    seen.add(digest)
                    yield sentence


def run(arguments: SearchArguments) -> str:
    """Add sentences, search, and return what was found."""
    arguments.check()
    import_faiss()  # before anything that takes long
    to_add: Iterable[str] | None = None
    if arguments.add:
        to_add = open_lines(arguments.add)
    elif arguments.chunks:
        to_add = ChunkSentences(arguments.chunks)
    encoder = SentenceEncoder.from_pretrained(arguments.surrogate) if arguments.surrogate else None
    index = SearchIndex(arguments.index, encoder)
    lines = []
    if to_add is not None:
        before = len(index)
        index.add(to_add, arguments.num_processes)
        lines.append(f"{len(index) - before} sentences added to {arguments.index}, which holds {len(index)}")
    if arguments.query:
        (hits,) = index.search(arguments.query, arguments.top_k)
        lines.extend(f"{hit.similarity:.4f}  {hit.sentence}" for hit in hits)
    return "\n".join(lines)
