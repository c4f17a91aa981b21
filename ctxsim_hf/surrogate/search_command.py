"""Add sentences or documents to an index, and find those most similar to a query: `ctxsim search`."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import ClassVar

import xxhash
from transformers.hf_argparser import HfArg

from ctxsim_hf.encoder.sentence_encoder import SentenceEncoder
from ctxsim_hf.runtime.arguments import Arguments
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.validation import Count
from ctxsim_hf.surrogate.document_contents import KIND, read_about
from ctxsim_hf.surrogate.document_file import DocumentFile, holds_documents
from ctxsim_hf.surrogate.document_index import DocumentHit, DocumentIndex
from ctxsim_hf.surrogate.search_index import Hit, SearchIndex, import_faiss
from ctxsim_hf.text.chunks import read_chunks
from ctxsim_hf.text.lines import open_lines
from ctxsim_hf.text.pipes import keep_pipes


@dataclass(kw_only=True)
class SearchArguments(Arguments):
    """The arguments of `ctxsim search`."""

    index: str = HfArg(help="Folder of the index; the first --add or --chunks makes it.")
    surrogate: str | None = HfArg(default=None, help="Folder or id of the surrogate; by default the index's own.")
    add: str | None = HfArg(
        default=None,
        help="Add the documents of a .jsonl, .jsonl.gz or .parquet file with id, title and text, or the lines of any "
        "other file; - is standard input.",
    )
    chunks: str | None = HfArg(default=None, help="Add the sentences of this folder made by ctxsim chunk, each once.")
    text_column: str = HfArg(default="text", help="Column that holds the text of documents.")
    language: str = HfArg(default="en", help="Language code for the sentence splitter, for documents.")
    delete: list[str] = HfArg(default_factory=list, help="Delete the documents with these ids.")
    compact: bool = HfArg(default=False, help="Write the documents again without those that were deleted.")
    queries: str | None = HfArg(default=None, help="File with a query in each line; prints a line of JSON for each.")
    fuse: bool = HfArg(
        default=True,
        help="Whether to rank documents by their words (BM25) as well as by similarity, fused by reciprocal rank; "
        "--no-fuse ranks by similarity alone.",
    )
    top_k: Count = HfArg(default=10, help="Number of sentences or documents to show.")
    num_processes: Count = HfArg(default=1, help="Number of processes that encode what is added.")
    query: list[str] = field(init=False, default_factory=list)

    positional: ClassVar[tuple[str, str]] = ("query", "What to look for, in quotes.")

    def check(self) -> None:
        """Refuse arguments that contradict each other."""
        something_else = self.add or self.chunks or self.queries or self.delete or self.compact
        if len(self.query) > 1 or not (self.query or something_else):
            raise UserError(f"expected one query in quotes, or something to add; got {len(self.query)} queries")
        if self.add and self.chunks:
            raise UserError("expected one of --add and --chunks, got both")
        if self.query and self.queries:
            raise UserError("expected one of --queries and a query in quotes, got both")


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
    """Change the index, search, and return what was found."""
    arguments.check()
    import_faiss()  # before anything that takes long
    encoder = SentenceEncoder.from_pretrained(arguments.surrogate) if arguments.surrogate else None
    about = read_about(Path(arguments.index))
    is_new = not about and arguments.add is not None
    if about.get("kind") == KIND or (is_new and holds_documents(str(arguments.add))):
        return _search_documents(arguments, DocumentIndex(arguments.index, encoder, arguments.language))
    return _search_sentences(arguments, encoder)


def _search_sentences(arguments: SearchArguments, encoder: SentenceEncoder | None) -> str:
    if arguments.delete or arguments.compact:
        raise UserError(f"{arguments.index!r} holds sentences without ids; only documents can be deleted")
    to_add: Iterable[str] | None = None
    if arguments.add and holds_documents(arguments.add):
        raise UserError(f"{arguments.index!r} holds sentences; choose another --index for documents")
    if arguments.add:
        to_add = _checked_lines(arguments.add)
    elif arguments.chunks:
        to_add = ChunkSentences(arguments.chunks)
    index = SearchIndex(arguments.index, encoder)
    lines = []
    if to_add is not None:
        before = len(index)
        index.add(to_add, arguments.num_processes)
        lines.append(f"{len(index) - before} sentences added to {arguments.index}, which holds {len(index)}")
    queries = _queries(arguments)
    found: Sequence[Sequence[Hit | DocumentHit]] = index.search(queries, arguments.top_k) if queries else []
    return "\n".join([*lines, *_shown(arguments, queries, found)])


def _checked_lines(name: str) -> Iterable[str]:
    """Return the lines of a file. The first is read at once, so that JSON Lines by another name start no index."""
    lines = open_lines(name)
    first = list(islice(lines, 1))
    return chain(first, lines) if isinstance(lines, Iterator) else lines  # a pipe is read once


def _search_documents(arguments: SearchArguments, index: DocumentIndex) -> str:
    if arguments.chunks or (arguments.add and not holds_documents(arguments.add)):
        raise UserError(f"{arguments.index!r} holds documents; add a file whose name ends in .jsonl or .parquet")
    lines, before = [], len(index)
    if arguments.delete:
        index.delete(arguments.delete)
        lines.append(f"{before - len(index)} documents deleted from {arguments.index}, which holds {len(index)}")
    if arguments.add:
        before = len(index)
        with keep_pipes([arguments.add]) as (path,):
            index.add(DocumentFile(path, arguments.text_column), arguments.num_processes)
        lines.append(f"{len(index) - before} documents added to {arguments.index}, which holds {len(index)}")
    if arguments.compact:
        index.compact()
        lines.append(f"{arguments.index} is compact")
    queries = _queries(arguments)
    found = index.search(queries, arguments.top_k, arguments.fuse) if queries else []
    return "\n".join([*lines, *_shown(arguments, queries, found)])


def _queries(arguments: SearchArguments) -> list[str]:
    return list(open_lines(arguments.queries)) if arguments.queries else arguments.query


def _shown(
    arguments: SearchArguments, queries: list[str], found: Sequence[Sequence[Hit | DocumentHit]]
) -> Iterator[str]:
    """Yield a line for each hit of a single query, or a line of JSON for each of many."""
    for query, hits in zip(queries, found, strict=True):
        if arguments.queries:
            yield json.dumps({"query": query, "hits": [hit._asdict() for hit in hits]}, ensure_ascii=False)
            continue
        for hit in hits:
            named = f"{hit.id}  {hit.title}: " if isinstance(hit, DocumentHit) and hit.title else ""
            named = named or (f"{hit.id}: " if isinstance(hit, DocumentHit) else "")
            yield f"{hit.similarity:.4f}  {named}{hit.sentence}"
