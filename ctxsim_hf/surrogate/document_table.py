"""Documents -> their sentences, one after another, and a table of ids, titles and numbers of sentences."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ctxsim_hf.surrogate.document_file import SearchDocument

TABLE = "documents.arrow"


class DocumentSentences:
    """The sentences of documents, one after another, and a table of the documents."""

    def __init__(self, documents: Iterable[SearchDocument], language: str) -> None:
        self.documents, self.language = documents, language
        self.table = make_table([])

    def by_document(self) -> Iterator[list[str]]:
        """Yield the sentences of each document; afterwards `table` has all documents."""
        rows = []
        for document in self.documents:
            sentences = document.sentences(self.language) or [""]  # every document has a place
            rows.append({"id": document.id, "title": document.title, "sentences": len(sentences)})
            yield sentences
        self.table = make_table(rows)

    def __iter__(self) -> Iterator[str]:
        for document in self.documents:
            yield from document.sentences(self.language) or [""]


def ranges(starts: np.ndarray, ends: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return all numbers from the starts to the ends of the chosen ones."""
    lengths = ends[chosen] - starts[chosen]
    return np.repeat(ends[chosen] - np.cumsum(lengths), lengths) + np.arange(lengths.sum())


def make_table(rows: list[dict[str, Any]]) -> pa.Table:
    """Return the table of documents."""
    columns = {"id": pa.string(), "title": pa.string(), "sentences": pa.int64()}
    return pa.Table.from_pylist(rows, pa.schema(list(columns.items())))


def write_table(path: Path, table: pa.Table) -> None:
    """Write a table that can be memory-mapped."""
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)


def map_table(path: Path) -> pa.Table:
    """Memory-map a table."""
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()
