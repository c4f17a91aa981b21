"""Store sentences with their vectors and find those most similar to a query, by exact cosine.

The search is `knn` of faiss, which reads the memory-mapped file in place, so that an index opens at once and takes no
memory of its own. On one core its exact search was 2.7 times as fast as that of usearch; IndexFlatIP is as fast but
copies every vector into memory first.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import filelock
import numpy as np

from ctxsim_hf.encoder.part_encoder import EncodeSettings
from ctxsim_hf.encoder.sentence_encoder import SentenceEncoder
from ctxsim_hf.encoder.vector_file import FinishedSentences, append
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import read_json, write_json

INDEX_FILE = "index.json"
VECTORS, TEXTS, ENDS = "vectors.f32", "sentences.utf8", "ends.i64"  # rows of float32; one after another; their ends


class Hit(NamedTuple):
    """A sentence that a search found."""

    similarity: float
    place: int  # of the sentence in the order of adding, from 0
    sentence: str


class SearchIndex:
    """A folder of sentences and their vectors.

    What is added is saved: the files only grow, and index.json, replaced at the end of an `add`, says how much of them
    counts. An interrupted `add` changes nothing, and the same `add` resumes it.

    Args:
        folder (`str` or `Path`): Folder of the index. If it does not exist, `encoder` starts one.
        encoder ([`SentenceEncoder`], *optional*): The encoder that made it. None opens it from the recorded path.
    """

    def __init__(self, folder: str | Path, encoder: SentenceEncoder | None = None) -> None:
        self.folder = Path(folder)
        about = read_json(self.folder / INDEX_FILE)
        if not about and encoder is None:
            raise UserError(
                f"nothing is indexed in {str(folder)!r} yet; add sentences with "
                f"`ctxsim search --index {folder} --surrogate MODEL --add FILE`"
            )
        self.encoder = encoder or SentenceEncoder.from_pretrained(about["surrogate"])
        if self.encoder.fingerprint is None:
            raise UserError("an index needs an encoder opened by from_pretrained, so that it can be recognised")
        self.vector_size = self.encoder.model.vector_size
        if about:
            self._refuse_another(about)
        self._about = about or {
            "surrogate": self.encoder.where,
            "fingerprint": self.encoder.fingerprint,
            "vector_size": self.vector_size,
            "rows": 0,
        }

    def _refuse_another(self, about: dict[str, Any]) -> None:
        made_by = f"{str(self.folder)!r} was made by the surrogate {about['surrogate']!r}"
        if about["vector_size"] != self.vector_size:
            raise UserError(f"{made_by}, whose vectors have {about['vector_size']} numbers, not {self.vector_size}")
        if about["fingerprint"] != self.encoder.fingerprint:
            raise UserError(f"{made_by} with other weights than {self.encoder.where!r}; open it with that one")

    def __len__(self) -> int:
        return int(self._about["rows"])

    def add(self, sentences: Iterable[str], num_processes: int = 1) -> None:
        """Encode sentences and append them."""
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            with filelock.FileLock(self.folder / ".lock", timeout=0):
                self._about = read_json(self.folder / INDEX_FILE) or self._about  # another run may have added since
                self._add(sentences, num_processes)
        except filelock.Timeout:
            raise UserError(f"another run is adding to {str(self.folder)!r}; wait for it or stop it first") from None
        except OSError as error:
            raise UserError(f"could not add to {str(self.folder)!r}: {error.strerror or error}") from error

    def _add(self, sentences: Iterable[str], num_processes: int) -> None:
        done = FinishedSentences(
            self.folder / "adding.json", {"fingerprint": self.encoder.fingerprint, "after": len(self)}
        )
        done.restore(sentences)
        settings = EncodeSettings(self.encoder.model.tokens_per_batch, normalize=True)
        self._append(self.encoder.encode_parts(sentences, settings, num_processes, done.rows), done)
        self._about = self._about | {"rows": len(self) + done.rows}
        write_json(self.folder / INDEX_FILE, self._about)
        done.clear()

    def _append(self, parts: Iterator[tuple[list[str], np.ndarray]], done: FinishedSentences) -> None:
        """Cut off what an interruption left half written, then append part after part."""
        rows = len(self) + done.rows
        for name in (VECTORS, ENDS, TEXTS):
            (self.folder / name).touch()
        os.truncate(self.folder / VECTORS, rows * self.vector_size * 4)
        os.truncate(self.folder / ENDS, rows * 8)
        end = int(self._ends(rows)[-1]) if rows else 0
        os.truncate(self.folder / TEXTS, end)
        with (
            (self.folder / VECTORS).open("ab") as vector_file,
            (self.folder / TEXTS).open("ab") as text_file,
            (self.folder / ENDS).open("ab") as end_file,
        ):
            for part, vectors in parts:
                texts = [sentence.encode("utf-8") for sentence in part]
                ends = end + np.cumsum([len(text) for text in texts])
                append(vector_file, np.ascontiguousarray(vectors, dtype="<f4").data)
                append(text_file, b"".join(texts))
                append(end_file, ends.astype("<i8").data)
                end = int(ends[-1])
                done.add(part)

    def search(self, queries: list[str], top_k: int = 10) -> list[list[Hit]]:
        """Return the sentences most similar to each query, best first."""
        if isinstance(queries, str):
            raise UserError("search takes a list of queries; got a string. Put it in a list")
        vectors = np.asarray(self.encoder.encode(queries, normalize_embeddings=True))
        similarities, places = self.search_vectors(vectors, top_k)
        return [
            [Hit(float(s), int(p), self.sentence(int(p))) for s, p in zip(*row, strict=True)]
            for row in zip(similarities, places, strict=True)
        ]

    def search_vectors(self, vectors: np.ndarray, top_k: int = 10) -> tuple[np.ndarray, np.ndarray]:
        """Return similarities and places, both (queries, top_k), for query vectors of length 1."""
        if vectors.ndim != 2 or vectors.shape[1] != self.vector_size:
            raise UserError(f"expected queries of {self.vector_size} numbers, got the shape {vectors.shape}")
        if top_k < 1:
            raise UserError(f"top_k must be at least 1, got {top_k}")
        if not len(self):
            raise UserError(f"nothing is indexed in {str(self.folder)!r} yet")
        faiss = import_faiss()
        stored = self.vectors()
        queries = np.ascontiguousarray(vectors, dtype=np.float32)
        found: tuple[np.ndarray, np.ndarray] = faiss.knn(
            queries, stored, min(top_k, len(self)), metric=faiss.METRIC_INNER_PRODUCT
        )
        return found

    def vectors(self) -> np.ndarray:
        """Return the vectors of all sentences, of length 1, memory-mapped: (sentences, vector size)."""
        return np.memmap(self.folder / VECTORS, "<f4", "r", shape=(len(self), self.vector_size))

    def sentence(self, place: int) -> str:
        """Return the sentence at a place."""
        ends = self._ends(len(self))
        start, end = int(ends[place - 1]) if place else 0, int(ends[place])
        with (self.folder / TEXTS).open("rb") as file:
            file.seek(start)
            return file.read(end - start).decode("utf-8")

    def _ends(self, rows: int) -> np.ndarray:
        return np.memmap(self.folder / ENDS, "<i8", "r", shape=(rows,))


def import_faiss() -> Any:
    """Import faiss, or say how to install it."""
    try:
        import faiss
    except ImportError as error:
        raise UserError("search needs faiss: pip install 'ctxsim-hf[search]'") from error
    return faiss
