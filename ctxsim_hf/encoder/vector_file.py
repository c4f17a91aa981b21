"""Vectors of sentences, part by part -> one `.npy` file, in constant memory. An interrupted run can be resumed."""

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import read_sealed, seal, write_json
from ctxsim_hf.runtime.growing_file import GrowingFile
from ctxsim_hf.runtime.working import WorkingFolder

PROGRESS = "progress.json"


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

    def restore(self, sentences: Iterable[str], files: Sequence[GrowingFile]) -> None:
        """Set `rows` to how many of these sentences are finished, and the files to where their output ends."""
        if not self._restore(sentences, files):
            self.rows, self._digest = 0, xxhash.xxh3_128()
            for file in files:
                file.restart()
        for file in files:
            file.cut()

    def _restore(self, sentences: Iterable[str], files: Sequence[GrowingFile]) -> bool:
        try:
            recorded = read_sealed(self.path, "")
        except UserError:
            return False  # damaged: begin again
        if recorded.get("recipe") != self.recipe or iter(sentences) is sentences:  # an iterator can be read only once
            return False
        for sentence in islice(sentences, recorded["rows"]):
            _add(self._digest, sentence)
        self.rows = recorded["rows"]
        same = self._digest.hexdigest() == recorded["digest"]
        return same and all(file.resume(recorded["files"][file.path.name]) for file in files)

    def add(self, sentences: Sequence[str], files: Sequence[GrowingFile]) -> None:
        """Record sentences whose output is at the end of the files."""
        for sentence in sentences:
            _add(self._digest, sentence)
        self.rows += len(sentences)
        described = {file.path.name: file.describe() for file in files}
        about = {"recipe": self.recipe, "rows": self.rows, "digest": self._digest.hexdigest(), "files": described}
        write_json(self.path, seal(about))

    def clear(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)


class VectorFile:
    """A `.npy` file that is written in a working folder beside it, with the record of what is finished."""

    def __init__(self, path: Path, vector_size: int, recipe: Mapping[str, Any]) -> None:
        self.vector_size, self.recipe = vector_size, recipe
        self.working = WorkingFolder(path, "a file")

    def write(
        self, sentences: Iterable[str], encode: Callable[[int], Iterator[tuple[list[str], np.ndarray]]]
    ) -> np.ndarray:
        """Append the vectors of sentences to the unfinished file, move it to its place, and return it memory-mapped.

        Args:
            sentences (`Iterable[str]`): What is encoded, to tell whether an unfinished file is of the same sentences.
            encode (`Callable`): Yields parts, each of sentences and float32 rows, from a given sentence on.
        """
        try:
            with self.working as working:
                self._write(sentences, encode)
                working.finish()
                vectors: np.ndarray = np.load(working.output, mmap_mode="r", allow_pickle=False)
                return vectors
        except OSError as error:
            raise UserError(
                f"could not write {str(self.working.output)!r}: {error.strerror or error}. What was finished is kept: "
                "fix this and run the same command again to resume"
            ) from error

    def _write(
        self, sentences: Iterable[str], encode: Callable[[int], Iterator[tuple[list[str], np.ndarray]]]
    ) -> None:
        finished = FinishedSentences(self.working.path / PROGRESS, self.recipe)
        with GrowingFile(self.working.partial, len(self._header(0))) as file:
            file.write_start(self._header(0))
            finished.restore(sentences, [file])
            for part, vectors in encode(finished.rows):
                file.append(np.ascontiguousarray(vectors, dtype="<f4").data)
                finished.add(part, [file])
            file.write_start(self._header(finished.rows))  # of the same length: numpy leaves room for any number
        finished.clear()

    def _header(self, rows: int) -> bytes:
        header = io.BytesIO()
        about = {"descr": "<f4", "fortran_order": False, "shape": (rows, self.vector_size)}
        np.lib.format.write_array_header_1_0(header, about)
        return header.getvalue()


def _add(digest: xxhash.xxh3_128, sentence: str) -> None:
    digest.update(sentence.encode("utf-8", "surrogatepass") + b"\xff")  # a separator that cannot occur in UTF-8
