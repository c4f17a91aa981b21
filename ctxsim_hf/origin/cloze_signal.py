"""The signal `cloze`: two sentences are alike if they suggest the same words (Eq. 3 with contexts that are words).

A context model that has `vectors` gives a state for each sentence and bridge. States of one bridge have a common
direction and vary more in some directions than in others, whatever the sentences: so they are centred on a background
of corpus sentences and partly whitened, by its covariance to the power -p/2; then cosines are averaged over bridges.
"""

import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import xxhash

MAX_REMEMBERED = 50_000  # vectors, in memory


@runtime_checkable
class ClozeModel(Protocol):
    """A context model that scores all one-word contexts of a sentence at once."""

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
        cache (`Path`, *optional*): File to keep vectors in from one process to the next. None keeps them in memory.
    """

    def __init__(self, model: ClozeModel, whitening: Whitening, cache: Path | None = None) -> None:
        self.model, self.whitening = model, whitening
        self._kept: dict[bytes, np.ndarray] = {}
        self._lock = threading.Lock()
        self._file = None if cache is None else _open_cache(cache)

    def vectors(self, sentences: Sequence[str]) -> np.ndarray:
        """Return unit vectors, whose dot product is the similarity: (sentences, vector size)."""
        keys = [_key(sentence) for sentence in sentences]
        with self._lock:  # one forward pass at a time, and a sentence once
            missing = {key: s for key, s in zip(keys, sentences, strict=True) if self._find(key) is None}
            if missing:
                made = self.whitening(self.model.vectors(list(missing.values())))
                self._keep(dict(zip(missing, made, strict=True)))
            found = [self._kept[key] for key in keys]
            while len(self._kept) > MAX_REMEMBERED:
                del self._kept[next(iter(self._kept))]
        return np.stack(found) if found else np.zeros((0, 0), np.float32)

    def remember(self, sentences: Sequence[str], states: np.ndarray) -> None:
        """Keep sentences whose states are known, so that the model need not be asked."""
        keys = [_key(sentence) for sentence in sentences]
        self._keep(dict(zip(keys, self.whitening(states), strict=True)))

    def similarity(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> np.ndarray:
        """Return the cosine of each pair, averaged over bridges."""
        vectors = self.vectors([*sentences1, *sentences2])
        first, second = vectors[: len(sentences1)], vectors[len(sentences1) :]
        return np.einsum("ij,ij->i", first, second, dtype=np.float64)

    def _find(self, key: bytes) -> np.ndarray | None:
        if key not in self._kept and self._file is not None:
            row = self._file.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
            if row is not None:
                self._kept[key] = np.frombuffer(row[0], np.float32)
        return self._kept.get(key)

    def _keep(self, vectors: dict[bytes, np.ndarray]) -> None:
        self._kept |= vectors
        if self._file is not None:
            rows = [(key, vector.astype(np.float32).tobytes()) for key, vector in vectors.items()]
            with self._file:
                self._file.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", rows)


def _key(sentence: str) -> bytes:
    return xxhash.xxh3_128_digest(sentence.encode("utf-8", "surrogatepass"))


def _open_cache(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    file = sqlite3.connect(path, timeout=60, check_same_thread=False)
    with file:
        file.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")
    return file
