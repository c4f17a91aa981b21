"""What mining found -> a .jsonl file, a .tsv file, a page of HTML or a table in a notebook."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from ctxsim_hf.runtime.working import writing_output
from ctxsim_hf.text.html_page import fragment, write_page


class Findings(ABC):
    """The base class of duplicates and communities, each of which says how its findings look."""

    title: ClassVar[str]
    shown_in_notebook: ClassVar[int]
    shown_on_page: ClassVar[int]

    @abstractmethod
    def json_lines(self) -> Iterator[str]:
        """Yield the lines of a .jsonl file."""

    @abstractmethod
    def tab_lines(self) -> Iterator[str]:
        """Yield the lines of a .tsv file."""

    @abstractmethod
    def body(self, number: int) -> str:
        """Return the first findings as HTML, without its style."""

    def html(self, number: int | None = None) -> str:
        """Return the first findings as HTML; None means as many as a page shows."""
        return fragment(self.body(self.shown_on_page if number is None else number))

    def _repr_html_(self) -> str:
        return self.html(self.shown_in_notebook)

    def __repr__(self) -> str:
        return str(self)

    def save(self, path: str | Path) -> None:
        """Write all findings to a .jsonl or .tsv file, or the first ones to a page of HTML."""
        if str(path).endswith(".html"):
            write_page(path, self.title, f"<h2>{self.title}</h2>{self.body(self.shown_on_page)}")
            return
        with writing_output(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
            file.writelines(self.json_lines() if str(path).endswith(".jsonl") else self.tab_lines())
