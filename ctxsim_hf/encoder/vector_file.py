"""Vectors of sentences, part by part -> one `.npy` file, in flat memory; an interrupted run goes on where it was."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import xxhash

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import read_json, write_json


class Done:
    """How many sentences an unfinished run has dealt with, kept in a file beside its output.

    They are known again by their digest, so that any sentences will do, wherever they come from.

    Args:
        path (`Path`): The file.
        recipe (`Mapping[str, Any]`): What shapes the output besides the sentences; a run with another starts anew.
    """

    def __init__(self, path: Path, recipe: Mapping[str, Any]) -> None:
        self.path, self.recipe = path, dict(recipe)
        self.rows, self._digest = 0, xxhash.xxh3_128()

    def recall(self, sentences: Iterable[str]) -> None:
        """Set `rows` to how many of these sentences are done."""
        noted = read_json(self.path)
        if noted.get("recipe") != self.recipe or iter(sentences) is sentences:  # what is read once cannot be reread
            return
        digest = xxhash.xxh3_128()
        for sentence in islice(sentences, noted["rows"]):
            _add(digest, sentence)
        if digest.hexdigest() == noted["digest"]:
            self.rows, self._digest = noted["rows"], digest

    def note(self, sentences: Sequence[str]) -> None:
        """These are done too, and safely written."""
        for sentence in sentences:
            _add(self._digest, sentence)
        self.rows += len(sentences)
        noted = {"recipe": self.recipe, "rows": self.rows, "digest": self._digest.hexdigest()}
        write_json(self.path, noted)

    def forget(self) -> None:
        self.path.unlink(missing_ok=True)


class VectorFile:
    """A `.npy` file under way, `<path>.partial`, and what of it is done, `<path>.partial.json`."""

    def __init__(self, path: Path, vector_size: int, recipe: Mapping[str, Any]) -> None:
        self.path, self.vector_size = path, vector_size
        self.partial = path.with_name(path.name + ".partial")
        self.done = Done(path.with_name(path.name + ".partial.json"), recipe)

    def write(self, parts: Iterator[tuple[list[str], np.ndarray]]) -> None:
        """Append parts of (sentences, float32 rows) to what is done; then the file gets its name."""
        try:
            self._write(parts)
        except OSError as error:
            raise UserError(
                f"could not write {str(self.path)!r}: {error.strerror or error}. What was finished is kept: "
                "mend this and run the same command again to go on"
            ) from error

    def _write(self, parts: Iterator[tuple[list[str], np.ndarray]]) -> None:
        self.partial.parent.mkdir(parents=True, exist_ok=True)
        with self.partial.open("r+b" if self.done.rows else "wb") as file:
            self._write_header(file)
            file.truncate(file.tell() + self.done.rows * self.vector_size * 4)
            file.seek(0, os.SEEK_END)
            for sentences, vectors in parts:
                append(file, np.ascontiguousarray(vectors, dtype="<f4").data)
                self.done.note(sentences)
            file.seek(0)
            self._write_header(file)  # of the same length: numpy leaves room for any number of rows
            append(file, b"")
        self.partial.replace(self.path)
        self.done.forget()

    def _write_header(self, file: BinaryIO) -> None:
        header = {"descr": "<f4", "fortran_order": False, "shape": (self.done.rows, self.vector_size)}
        np.lib.format.write_array_header_1_0(file, header)


def append(file: BinaryIO, data: Any) -> None:
    """Write, and be sure of it even if the power fails now."""
    file.write(data)
    file.flush()
    os.fsync(file.fileno())


def _add(digest: xxhash.xxh3_128, sentence: str) -> None:
    digest.update(sentence.encode("utf-8", "surrogatepass") + b"\xff")  # which no UTF-8 holds: an end
