"""The signal `cloze`: two sentences are alike if they suggest the same words (Eq. 3 with contexts that are words).

A context model that has `vectors` gives a state for each sentence and bridge. States of one bridge have a common
direction and vary more in some directions than in others, whatever the sentences: so they are centred on a background
of corpus sentences and, if asked, partly whitened, by its covariance to the power -p/2; then cosines are averaged over
bridges. Some sentences are near to everything. What two sentences have in common counts only as far as it is more than
either has with its nearest neighbours in the background: similarity = (cosine - r) / (1 - r), where r is the mean
cosine with these neighbours, so that a sentence keeps the similarity 1 with itself.
"""

import sqlite3
import threading
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import xxhash

from ctxsim_hf.encoder.vector_checks import check_vectors
from ctxsim_hf.runtime.errors import UserError

MAX_REMEMBERED = 50_000  # sentences, in memory
SENTENCES_PER_BLOCK = 1000  # what a kill may lose of a cache
SAME = 0.99  # the cosine of a sentence and itself, at least, when both were read in half precision


@runtime_checkable
class ClozeModel(Protocol):
    """A context model that scores all one-word contexts of a sentence at once."""

    cloze_power: float  # how far its states should be whitened

    def vectors(self, sentences: Sequence[str]) -> np.ndarray:
        """Return states whose linear map is those scores: (sentences, bridges, hidden)."""
        ...


class Whitening:
    """
    Args:
        background (`np.ndarray`): States of corpus sentences, (sentences, bridges, hidden).
        power (`float`): 0 leaves the directions as they are, 1 lets the background vary alike in all of them.
        ridge (`float`): Added to each eigenvalue, as a share of their mean.
    """

    def __init__(self, background: np.ndarray, power: float, ridge: float) -> None:
        self.means = background.mean(0)  # (bridges, hidden)
        self.maps = []
        for bridge in range(background.shape[1]):
            centred = (background[:, bridge] - self.means[bridge]).astype(np.float64)
            values, directions = np.linalg.eigh(centred.T @ centred / len(centred))
            values = np.maximum(values, 0)
            scales = (values + ridge * values.mean()) ** (-power / 2)
            self.maps.append((directions * scales).astype(np.float32))

    def __call__(self, states: np.ndarray) -> np.ndarray:
        """Return unit vectors whose dot product is the mean cosine over bridges: (sentences, bridges * hidden)."""
        parts = [(states[:, bridge] - self.means[bridge]) @ mapped for bridge, mapped in enumerate(self.maps)]
        lengths = [np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-12) for part in parts]
        return np.concatenate([p / n for p, n in zip(parts, lengths, strict=True)], axis=1) / len(parts) ** 0.5


class ClozeSignal:
    """
    Args:
        model (`ClozeModel`): Gives the states.
        whitening (`Whitening`): Makes them comparable.
        cache (`Path`, *optional*): File to keep states in from one process to the next. None keeps them in memory.
        background (`np.ndarray`, *optional*): States of corpus sentences, for the neighbours. None means none.
        neighbours (`int`): How many of them say how near a sentence is to everything; 0 leaves cosines as they are.
    """

    def __init__(
        self,
        model: ClozeModel,
        whitening: Whitening,
        cache: Path | None = None,
        background: np.ndarray | None = None,
        neighbours: int = 0,
    ) -> None:
        self.model, self.whitening = model, whitening
        others = 0 if background is None else len(background) - 1  # a sentence may be in the background itself
        self._neighbours = min(neighbours, others)
        self._background = whitening(background) if background is not None and self._neighbours > 0 else None
        self._kept: dict[bytes, np.ndarray] = {}
        self._lock = threading.Lock()
        self._cache = cache
        self._file = None if cache is None else _open_cache(cache)

    def vectors(self, sentences: Sequence[str]) -> np.ndarray:
        """Return unit vectors, whose dot product is the mean cosine over bridges: (sentences, vector size)."""
        try:
            return self.whitening(self._states(sentences)) if len(sentences) else np.zeros((0, 0), np.float32)
        except sqlite3.DatabaseError as error:
            raise _damaged(self._cache, error) from error

    def _states(self, sentences: Sequence[str]) -> np.ndarray:
        keys = [_key(sentence) for sentence in sentences]
        with self._lock:  # one forward pass at a time, and a sentence once
            missing = {key: s for key, s in zip(keys, sentences, strict=True) if self._find(key) is None}
            for start in range(0, len(missing), SENTENCES_PER_BLOCK):
                block = dict(islice(missing.items(), start, start + SENTENCES_PER_BLOCK))
                states = check_vectors(self.model.vectors(list(block.values())))
                self._keep(dict(zip(block, states, strict=True)))
            found = [self._kept[key] for key in keys]
            while len(self._kept) > MAX_REMEMBERED:
                del self._kept[next(iter(self._kept))]
        return np.stack(found).reshape(len(found), len(self.whitening.means), -1)

    def remember(self, sentences: Sequence[str], states: np.ndarray) -> None:
        """Keep sentences whose states are known, so that the model need not be asked."""
        self._keep({_key(sentence): state for sentence, state in zip(sentences, states, strict=True)})

    def similarity(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> np.ndarray:
        """Return the similarity of each pair."""
        if not len(sentences1):
            return np.zeros(0)
        vectors = self.vectors([*sentences1, *sentences2])
        first, second = vectors[: len(sentences1)], vectors[len(sentences1) :]
        cosines = np.einsum("ij,ij->i", first, second, dtype=np.float64)
        return self._corrected(cosines, self._nearness(first), self._nearness(second))

    def group_similarity(self, sentences: Sequence[str], pairs: np.ndarray) -> np.ndarray:
        """Return the similarity of pairs within a group, given by places, from one product: (pairs,)."""
        vectors = self.vectors(sentences).astype(np.float64)
        nearness, (first, second) = self._nearness(vectors), pairs.T
        return self._corrected((vectors @ vectors.T)[first, second], nearness[first], nearness[second])

    def _nearness(self, vectors: np.ndarray) -> np.ndarray:
        """Return the mean cosine of each vector with its neighbours in the background."""
        if self._background is None:
            return np.zeros(len(vectors))
        cosines = vectors @ self._background.T
        cosines[cosines > SAME] = -1  # the sentence itself is in the background
        nearest = np.partition(cosines, -self._neighbours, axis=1)[:, -self._neighbours :]
        return np.asarray(nearest.mean(1, dtype=np.float64))

    def _corrected(self, cosines: np.ndarray, nearness1: np.ndarray, nearness2: np.ndarray) -> np.ndarray:
        common = (nearness1 + nearness2) / 2
        # Only a model for which everything is alike goes below -1, as no surrogate's cosine could.
        return np.maximum((cosines - common) / (1 - common), -1)

    def _find(self, key: bytes) -> np.ndarray | None:
        if key not in self._kept and self._file is not None:
            row = self._file.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
            if row is not None and row[0][:16] == self._digest(key, row[0][16:]):
                self._kept[key] = np.frombuffer(row[0][16:], np.float32)
        return self._kept.get(key)

    def _digest(self, key: bytes, data: bytes) -> bytes:
        """Return what tells a row from a damaged one, and from one of another model."""
        return xxhash.xxh3_128_digest(str(self._cache and self._cache.stem).encode() + key + data)

    def _keep(self, states: dict[bytes, np.ndarray]) -> None:
        self._kept |= {key: state.ravel() for key, state in states.items()}
        if self._file is not None:
            kept = {key: state.astype(np.float32).tobytes() for key, state in states.items()}
            rows = [(key, self._digest(key, data) + data) for key, data in kept.items()]
            with self._file:
                self._file.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)


def _key(sentence: str) -> bytes:
    return xxhash.xxh3_128_digest(sentence.encode("utf-8", "surrogatepass"))


def _open_cache(path: Path) -> sqlite3.Connection:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = sqlite3.connect(path, timeout=60, check_same_thread=False)
        with file:
            file.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")
    except (OSError, sqlite3.DatabaseError) as error:
        raise _damaged(path, error) from error
    return file


def _damaged(path: Path | None, error: Exception) -> UserError:
    return UserError(f"the cache {str(path)!r} cannot be used ({error}); remove it, or name another --cache")
