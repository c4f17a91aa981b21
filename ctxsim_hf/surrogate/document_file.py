"""JSON Lines or parquet with ids, titles and texts -> documents to search."""

import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.lines import open_input
from ctxsim_hf.text.rows import GZIP_ERRORS, PARQUET_ERRORS, BadDocument, Row, damaged_parquet, json_rows, parquet_rows
from ctxsim_hf.text.sentence_checks import check_sentence
from ctxsim_hf.text.sentences import split_document

DOCUMENT_ENDINGS = r"\.(jsonl|jsonl\.gz|parquet)$"
MAX_SENTENCE_CHARS = 2000


class SearchDocument(NamedTuple):
    """A document to search."""

    id: str
    title: str
    text: str

    def sentences(self, language: str) -> list[str]:
        """Return the title, if there is one, and the sentences of the text."""
        runs = split_document(self.text, language, MAX_SENTENCE_CHARS).runs
        return [*([self.title] if self.title.strip() else []), *(sentence for run in runs for sentence in run)]


def holds_documents(name: str) -> bool:
    """Return whether a file has rows with columns, by its name."""
    return re.search(DOCUMENT_ENDINGS, name) is not None


@dataclass(frozen=True)
class DocumentFile:
    """The documents of a file, read as often as asked for.

    Args:
        path (`str`): A file whose name ends in .jsonl, .jsonl.gz or .parquet.
        text_column (`str`): Column of the text. The columns `id` and `title` need not be there: then a document is
            called by its file and row, and has no title.
    """

    path: str
    text_column: str = "text"

    def __iter__(self) -> Iterator[SearchDocument]:
        name = re.sub(DOCUMENT_ENDINGS, "", Path(self.path).name)
        with open_input(self.path) as raw:
            try:
                for row in self._rows(raw):
                    yield self._document(row, name)
            except GZIP_ERRORS as error:
                raise UserError(f"cannot read {self.path!r}: expected a whole gzip file: {error}") from error
            except PARQUET_ERRORS as error:
                reason = damaged_parquet(error) if self.path.endswith(".parquet") else str(error)
                raise UserError(f"cannot read {self.path!r}: {reason}") from error

    def _rows(self, raw: IO[bytes]) -> Iterator[Row]:
        if self.path.endswith(".parquet"):
            return parquet_rows(raw, self.path, lambda: 0, columns=[self.text_column, "id", "title"])
        stream = cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if self.path.endswith(".gz") else raw
        return json_rows(stream, self.path, lambda: 0)

    def _document(self, row: Row, name: str) -> SearchDocument:
        values = row.values
        if isinstance(values, BadDocument):
            raise UserError(f"{values.place}: {values.message}")
        if self.text_column not in values:
            raise UserError(
                f"{row.place}: expected a column {self.text_column!r} with the text (--text-column), found "
                f"{row.column_names}"
            )
        text: Any = values[self.text_column]
        if not isinstance(text, str):
            raise UserError(f"{row.place}: expected text in column {self.text_column!r}, found {text!r:.40}")
        id, title = values.get("id"), values.get("title")
        called = f"{name}/{row.number}" if id is None else str(id)
        found = SearchDocument(called, "" if title is None else str(title), text)
        for column, value in found._asdict().items():
            check_sentence(value, f"the {column} of {row.place}")
        return found
