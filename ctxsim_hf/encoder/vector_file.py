"""Vectors of sentences, part by part -> one `.npy` file, in constant memory. An interrupted run can be resumed."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import xxhash

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import read_json, write_json


class FinishedSentences:
    """How many sentences an unfinished run has processed, kept in a file beside its output.

    Sentences are recognised by their digest, so that they may come from anywhere.

    Args:
        path (`Path`): The file.
        recipe (`Mapping[str, Any]`): What shapes the output besides the sentences; with another recipe, a run starts
            from the beginning.
    """

    def __init__(self, path: Path, recipe: Mapping[str, Any]) -> None:
        self.path, self.recipe = path, dict(recipe)
        self.rows, self._digest = 0, xxhash.xxh3_128()

    def restore(self, sentences: Iterable[str]) -> None:
        """Set `rows` to how many of these sentences are finished."""
        recorded = read_json(self.path)
        if recorded.get("recipe") != self.recipe or iter(sentences) is sentences:  # an iterator can be read only once
            return
        digest = xxhash.xxh3_128()
        for sentence in islice(sentences, recorded["rows"]):
            _add(digest, sentence)
        if digest.hexdigest() == recorded["digest"]:
            self.rows, self._digest = recorded["rows"], digest

    def add(self, sentences: Sequence[str]) -> None:
        """Record sentences whose output is on disk."""
        for sentence in sentences:
            _add(self._digest, sentence)
        self.rows += len(sentences)
        write_json(self.path, {"recipe": self.recipe, "rows": self.rows, "digest": self._digest.hexdigest()})

    def clear(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)


class VectorFile:
    """An unfinished `.npy` file, `<path>.partial`, and the record of what is finished, `<path>.partial.json`."""

    def __init__(self, path: Path, vector_size: int, recipe: Mapping[str, Any]) -> None:
        self.path, self.vector_size = path, vector_size
        self.partial = path.with_name(path.name + ".partial")
        self.finished = FinishedSentences(path.with_name(path.name + ".partial.json"), recipe)

    def write(self, parts: Iterator[tuple[list[str], np.ndarray]]) -> None:
        """Append parts, each of sentences and float32 rows, to the unfinished file and rename it at the end."""
        try:
            self._write(parts)
        except OSError as error:
            raise UserError(
                f"could not write {str(self.path)!r}: {error.strerror or error}. What was finished is kept: "
                "fix this and run the same command again to resume"
            ) from error

    def _write(self, parts: Iterator[tuple[list[str], np.ndarray]]) -> None:
        self.partial.parent.mkdir(parents=True, exist_ok=True)
        with self.partial.open("r+b" if self.finished.rows else "wb") as file:
            self._write_header(file)
            file.truncate(file.tell() + self.finished.rows * self.vector_size * 4)
            file.seek(0, os.SEEK_END)
            for sentences, vectors in parts:
                append(file, np.ascontiguousarray(vectors, dtype="<f4").data)
                self.finished.add(sentences)
            file.seek(0)
            self._write_header(file)  # of the same length, since numpy leaves room for any number of rows
            append(file, b"")
        self.partial.replace(self.path)
        self.finished.clear()

    def _write_header(self, file: BinaryIO) -> None:
        header = {"descr": "<f4", "fortran_order": False, "shape": (self.finished.rows, self.vector_size)}
        np.lib.format.write_array_header_1_0(file, header)


def append(file: BinaryIO, data: Any) -> None:
    """Write data and flush it to disk, so that it survives a power failure."""
    file.write(data)
    file.flush()
    os.fsync(file.fileno())


def _add(digest: xxhash.xxh3_128, sentence: str) -> None:
    digest.update(sentence.encode("utf-8", "surrogatepass") + b"\xff")  # a separator that cannot occur in UTF-8
