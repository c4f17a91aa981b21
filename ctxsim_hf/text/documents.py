"""A text file, or rows with a column of text -> documents, each with the number of its row and of its part."""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from ctxsim_hf.text.lines import is_json_object
from ctxsim_hf.text.rows import BadDocument, Row, bad_byte

# Control characters except white space, and surrogates, which no UTF-8 file can hold.
UNPRINTABLE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Document:
    """A text to be cut into chunks, or a part of one that is too long."""

    doc_id: str
    source: str
    text: str
    kept: dict[str, str]  # columns to keep, as text
    whole_id: str = field(default="", compare=False)  # id of the document that this is a part of, or its own


Found = Iterator[tuple[int, int, Document | BadDocument]]  # with the numbers of the row and of the part


@dataclass(frozen=True)
class Columns:
    """The columns to read."""

    text: str = "text"
    id: str = "id"
    kept: Sequence[str] = ()

    @property
    def names(self) -> list[str]:
        """All of them."""
        return [self.text, self.id, *self.kept]


def documents_in_text(stream: IO[bytes], source: str, columns: Columns, limit: int) -> Found:
    """Yield the document of a text file, or its parts of at most `limit` characters, all with row number 0."""
    text = io.TextIOWrapper(stream, encoding="utf-8-sig")
    part = 0
    try:
        for part, (name, words) in enumerate(_parts(source, text, limit)):
            if part == 0 and is_json_object(words.partition("\n")[0]):
                message = "expected text, found a JSON object; a file of JSON Lines must be named .jsonl"
                yield 0, part, BadDocument(source, "not text", message)
                return
            yield 0, part, Document(name, source, words, dict.fromkeys(columns.kept, ""), source)
    except UnicodeDecodeError as error:
        message = f"expected UTF-8 text, found {bad_byte(error)}; is it a text file?"
        yield 0, part + 1, BadDocument(source, "not UTF-8", message)
    finally:
        text.detach()  # the caller closes the stream


def documents_in_rows(rows: Iterator[Row], source: str, columns: Columns, limit: int) -> Found:
    """Yield a document for each row, or its parts of at most `limit` characters."""
    for row in rows:
        place, number, values, _ = row
        if isinstance(values, BadDocument):
            yield number, 0, values
            continue
        if bad := _check_row(row, values, columns):
            yield number, 0, bad
            continue
        try:
            doc_id = clean(f"{source}/{values.get(columns.id, number)}")[0]
            kept = {name: _as_text(values[name]) for name in columns.kept}
        except RecursionError:  # nested as deeply as could be read, and too deeply to be shown
            yield number, 0, BadDocument(place, "not JSON", "expected an id and columns that are not nested so deeply")
            continue
        text = values[columns.text]
        if len(text) <= limit:
            yield number, 0, Document(doc_id, source, text, kept, doc_id)
            continue
        for part, (name, words) in enumerate(_parts(doc_id, io.StringIO(text), limit)):
            yield number, part, Document(name, source, words, kept, doc_id)


def clean(text: str) -> tuple[str, int]:
    """Replace unprintable characters by spaces; return the text and the number of replacements."""
    return UNPRINTABLE.subn(" ", text)


def _check_row(row: Row, values: Mapping[str, Any], columns: Columns) -> BadDocument | None:
    place = row.place
    for name in (columns.text, *columns.kept):
        if name not in values:
            flag = "--text-column" if name == columns.text else "--keep-columns"
            return BadDocument(
                place, "no such column", f"expected a column {name!r} ({flag}), found {row.column_names}"
            )
    text = values[columns.text]
    if text is None:
        return BadDocument(place, "text is null", f"expected text in column {columns.text!r}, found null")
    if not isinstance(text, str):
        found = f"{type(text).__name__} {str(text)[:40]!r}"
        return BadDocument(place, "text is no string", f"expected text in column {columns.text!r}, found {found}")
    return None


def _parts(name: str, text: IO[str], limit: int) -> Iterator[tuple[str, str]]:
    """Yield (name, text), or parts of at most `limit` characters: (name, first part), (name~2, second part), ..."""
    number, rest = 1, ""
    while block := text.read(limit):
        rest += block
        while len(rest) > limit:
            blank_line, space = rest.rfind("\n\n", 0, limit - 1), rest.rfind(" ", 0, limit)
            cut = blank_line + 2 if blank_line > 0 else space + 1 if space > 0 else limit
            yield (name if number == 1 else f"{name}~{number}"), rest[:cut]
            number, rest = number + 1, rest[cut:]
    if rest or number == 1:
        yield (name if number == 1 else f"{name}~{number}"), rest


def _as_text(value: Any) -> str:
    return "" if value is None else clean(str(value))[0]
