"""Store sentences with their vectors and find those most similar to a query, by exact cosine.

The search is `knn` of faiss, which reads the memory-mapped file in place, so that an index opens at once and takes no
memory of its own. On one core its exact search was 2.7 times as fast as that of usearch; IndexFlatIP is as fast but
copies every vector into memory first.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ctxsim_hf.encoder.part_encoder import EncodeSettings
from ctxsim_hf.encoder.sentence_encoder import SentenceEncoder
from ctxsim_hf.encoder.vector_file import FinishedSentences
from ctxsim_hf.runtime.checks import check_once, file_state
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import read_sealed, seal, write_json
from ctxsim_hf.runtime.growing_file import GrowingFile
from ctxsim_hf.runtime.validation import Count, check_value
from ctxsim_hf.runtime.working import writing_into
from ctxsim_hf.text.sentence_checks import check_sentences

INDEX_FILE = "index.json"
VECTORS, TEXTS, ENDS = "vectors.f32", "sentences.utf8", "ends.i64"  # rows of float32; one after another; their ends
FILES = (VECTORS, TEXTS, ENDS)
Part = tuple[list[str], np.ndarray]  # sentences, and their vectors
REMEDY = "remove the index and add its sentences again"


class Hit(NamedTuple):
    """A sentence that a search found."""

    similarity: float
    place: int  # of the sentence in the order of adding, from 0
    sentence: str


class SearchIndex:
    """A folder of sentences and their vectors.

    What is added is saved: the files only grow, and index.json, replaced at the end of an `add`, says how much of them
    counts and has the digests of what each `add` appended. An interrupted `add` changes nothing, and the same `add`
    resumes it. A damaged index is refused.

    Args:
        folder (`str` or `Path`): Folder of the index. If it does not exist, `encoder` starts one.
        encoder ([`SentenceEncoder`], *optional*): The encoder that made it. None opens it from the recorded path.
    """

    def __init__(self, folder: str | Path, encoder: SentenceEncoder | None = None) -> None:
        self.folder, self._maps = Path(folder), dict[str, np.ndarray]()
        about = self._read()
        if not about and encoder is None:
            raise nothing_indexed(self.folder)
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
            "added": [],
        }

    def _read(self) -> dict[str, Any]:
        """Return index.json, or an empty dictionary if there is no index; refuse a damaged one."""
        # Files first, since another run may write index.json and then them.
        left = [name for name in FILES if (self.folder / name).exists()]
        about = read_sealed(self.folder / INDEX_FILE, REMEDY)
        if not about:
            if left:
                raise UserError(f"{str(self.folder)!r} has {left[0]} but no {INDEX_FILE}; {REMEDY}")
            return {}
        if "added" not in about:
            raise UserError(f"{str(self.folder)!r} has no digests, as another version made it; {REMEDY}")
        parts = {name: [part[name] for part in about["added"]] for name in FILES if about["added"]}
        for name, recorded in parts.items():
            expected, found = sum(part["bytes"] for part in recorded), file_state(self.folder / name, REMEDY).st_size
            if found < expected:  # more is what an interrupted run left
                raise UserError(
                    f"{str(self.folder / name)!r} is damaged: expected {expected} bytes, found {found}; {REMEDY}"
                )
        check_once(self.folder, parts, lambda: self._verify(parts), REMEDY)
        return about

    def _verify(self, parts: dict[str, list[dict[str, Any]]]) -> None:
        for name, recorded in parts.items():
            start = 0
            for part in recorded:
                with GrowingFile(self.folder / name, start, read_only=True) as file:
                    if not file.resume(part):
                        raise UserError(f"{str(self.folder / name)!r} is damaged: its content changed; {REMEDY}")
                start += part["bytes"]

    def _refuse_another(self, about: dict[str, Any]) -> None:
        made_by = f"{str(self.folder)!r} was made by the surrogate {about['surrogate']!r}"
        if about["vector_size"] != self.vector_size:
            raise UserError(f"{made_by}, whose vectors have {about['vector_size']} numbers, not {self.vector_size}")
        if about["fingerprint"] != self.encoder.fingerprint:
            raise UserError(f"{made_by} with other weights than {self.encoder.where!r}; {REMEDY}")

    def __len__(self) -> int:
        return int(self._about["rows"])

    def add(self, sentences: Iterable[str], num_processes: int = 1) -> None:
        """Encode sentences and append them."""
        settings = EncodeSettings(self.encoder.model.tokens_per_batch, normalize=True)
        self.append(sentences, lambda first: self.encoder.encode_parts(sentences, settings, num_processes, first))

    def append(self, sentences: Iterable[str], parts: Callable[[int], Iterator[Part]]) -> None:
        """Append sentences whose vectors are given.

        Args:
            sentences (`Iterable[str]`): The sentences.
            parts (`Callable`): Yields them in parts with their unit vectors, from a given sentence on.
        """
        check_sentences(sentences)
        with writing_into(self.folder):
            try:
                self.folder.mkdir(exist_ok=True)
                self._about = self._read() or self._about  # another run may have added since
                self._write_about()  # first, since files without it are damaged
                self._append(sentences, parts)
            except OSError as error:
                raise UserError(f"could not add to {str(self.folder)!r}: {error.strerror or error}") from error

    def _append(self, sentences: Iterable[str], parts: Callable[[int], Iterator[Part]]) -> None:
        done = FinishedSentences(
            self.folder / "adding.json", {"fingerprint": self.encoder.fingerprint, "after": len(self)}
        )
        with ExitStack() as stack:
            files = [stack.enter_context(GrowingFile(self.folder / name, self._size(name))) for name in FILES]
            done.restore(sentences, files)
            for part, vectors in parts(done.rows):
                texts = [sentence.encode("utf-8") for sentence in part]
                vector_file, text_file, end_file = files
                ends = text_file.end + np.cumsum([len(text) for text in texts])
                vector_file.append(np.ascontiguousarray(vectors, dtype="<f4").data)
                text_file.append(b"".join(texts))
                end_file.append(ends.astype("<i8").data)
                done.add(part, files)
            described = {file.path.name: file.describe() for file in files}
        if done.rows:
            added = [*self._about["added"], described]
            self._about = self._about | {"rows": len(self) + done.rows, "added": added}
        self._write_about()
        done.clear()

    def keep(self, number: int) -> None:
        """Forget all but the first `number` additions."""
        added = self._about["added"][:number]
        if added != self._about["added"]:
            with writing_into(self.folder):
                rows = sum(part[ENDS]["bytes"] for part in added) // 8
                self._about = self._about | {"rows": rows, "added": added}
                self._write_about()

    def _write_about(self) -> None:
        write_json(self.folder / INDEX_FILE, seal(self._about))

    def _size(self, name: str) -> int:
        return sum(part[name]["bytes"] for part in self._about["added"])

    def search(self, queries: list[str], top_k: int = 10) -> list[list[Hit]]:
        """Return the sentences most similar to each query, best first."""
        if isinstance(queries, str):
            raise UserError("search takes a list of queries; got a string. Put it in a list")
        check_sentences(queries, "a list of queries")
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
        check_value("top_k", top_k, Count)
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
        return self._map(VECTORS, "<f4", (len(self), self.vector_size))

    def sentence(self, place: int) -> str:
        """Return the sentence at a place."""
        ends = self._map(ENDS, "<i8", (len(self),))
        start, end = int(ends[place - 1]) if place else 0, int(ends[place])
        return self._map(TEXTS, "u1", (int(ends[-1]),))[start:end].tobytes().decode("utf-8") if end > start else ""

    def _map(self, name: str, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
        """Map a file once for each length, so that an open index goes on when its files are removed."""
        if name not in self._maps or self._maps[name].shape != shape:
            self._maps[name] = np.memmap(self.folder / name, dtype, "r", shape=shape)
        return self._maps[name]


def nothing_indexed(folder: Path) -> UserError:
    """Return the error for a folder to which nothing was added yet."""
    return UserError(
        f"nothing is indexed in {str(folder)!r} yet; add sentences or documents with "
        f"`ctxsim search --index {folder} --surrogate MODEL --add FILE`"
    )


def import_faiss() -> Any:
    """Import faiss, or say how to install it."""
    try:
        import faiss
    except ImportError as error:
        raise UserError("search needs faiss: pip install 'ctxsim-hf[search]'") from error
    return faiss
