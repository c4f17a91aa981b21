"""Choose the contexts C_s that a sentence is judged in.

The candidates of candidates.py are taken in the order of their fit score, skipping those that resemble one chosen
before.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import xxhash
from scipy.sparse import csr_array

from ctxsim_hf.origin.candidates import Candidates
from ctxsim_hf.origin.context_index import ContextIndex, sentence_key
from ctxsim_hf.origin.fit_score import ContextScorer
from ctxsim_hf.origin.settings import OriginSettings
from ctxsim_hf.runtime.files import writing
from ctxsim_hf.text.tokenized import TokenizedSentences


def jaccard(sentences: TokenizedSentences) -> np.ndarray:
    """Return the Jaccard similarity of the tokens of every two sentences; two without tokens have 1."""
    number = len(sentences)
    rows = np.repeat(np.arange(number), np.diff(sentences.sentence_starts))
    shape = (number, 1 + int(sentences.tokens.max(initial=0)))
    held = csr_array((np.ones(len(rows), np.float32), (rows, sentences.tokens.astype(np.int64))), shape=shape)
    held.sum_duplicates()
    held.data[:] = 1  # a token counts once
    shared = (held @ held.T).toarray()
    sizes = shared.diagonal()
    together = sizes[:, None] + sizes - shared
    return np.divide(shared, together, out=np.ones_like(shared), where=together > 0)


def select(chunks: np.ndarray, likeness: np.ndarray, size: int, max_jaccard: float) -> list[int]:
    """Choose at most `size` different contexts and return their places.

    At most one is chosen from a chunk, and none whose sentence before the gap is too like that of one chosen before.

    Args:
        chunks (`np.ndarray`): The chunk of each context, best context first.
        likeness (`np.ndarray`): Jaccard similarity of their sentences before the gap.
        size (`int`): Number of contexts to choose.
        max_jaccard (`float`): Two chosen contexts have a lower likeness than this.
    """
    chosen: list[int] = []
    free = np.ones(len(chunks), dtype=bool)
    while len(chosen) < size and free.any():
        place = int(free.argmax())  # the best that is left
        chosen.append(place)
        free &= (chunks != chunks[place]) & (likeness[place] < max_jaccard)
        free[place] = False
    return chosen


def _read(path: Path, key: str) -> np.ndarray | None:
    """Read a set from a cache, or return None if it is not there, is damaged, or was kept under another key."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    contexts = np.frombuffer(data[16:], "<i8") if len(data) % 8 == 0 else np.zeros(0, "<i8")
    return contexts.astype(np.int64) if data[:16] == _digest(key, contexts) else None


def _digest(key: str, contexts: np.ndarray) -> bytes:
    return xxhash.xxh3_128_digest(key.encode() + contexts.astype("<i8").tobytes())


@dataclass
class ContextSets:
    """The context sets of sentences, remembered in memory and, if asked, on disk."""

    index: ContextIndex
    scorer: ContextScorer
    candidates: Candidates
    settings: OriginSettings
    made_with: str  # a fingerprint of models and index
    cache_folder: Path | None = None  # where to keep sets on disk; None keeps none
    max_remembered: int = 100_000
    _remembered: OrderedDict[str, np.ndarray] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, sentences: Sequence[str]) -> Iterator[np.ndarray]:
        """Yield the contexts of each sentence, best first; fewer than asked for if no more of them differ."""
        for sentence in sentences:
            key = self._key(sentence)
            with self._lock:
                found = self._remembered.get(key)
            if found is None:
                found = self._load_or_build(key, sentence)
                self._remember(key, found)
            yield found

    def _key(self, sentence: str) -> str:
        settings = self.settings
        shaping = (
            *(sentence, self.made_with, settings.strategy, settings.num_contexts, settings.screen_chunks),
            *(settings.rerank_candidates, settings.max_jaccard, settings.seed, self.scorer.weights),
        )
        return xxhash.xxh3_128_hexdigest(repr(shaping).encode())

    def _remember(self, key: str, contexts: np.ndarray) -> None:
        with self._lock:
            self._remembered[key] = contexts
            if len(self._remembered) > self.max_remembered:
                self._remembered.popitem(last=False)

    def _load_or_build(self, key: str, sentence: str) -> np.ndarray:
        if self.cache_folder is None:
            return self._build(sentence)
        path = self.cache_folder / key[:2] / f"{key}.contexts"
        contexts = _read(path, key)
        if contexts is None:
            contexts = self._build(sentence)
            with writing(path, shared=True) as temporary:
                temporary.write_bytes(_digest(key, contexts) + contexts.astype("<i8").tobytes())
        return contexts

    def _build(self, sentence: str) -> np.ndarray:
        if self.settings.strategy == "random":
            return self._draw(sentence)
        (ranked,) = self.candidates([sentence])
        size = self.settings.num_contexts
        number = size * self.settings.rerank_candidates
        while True:
            chosen = self._choose(sentence, ranked[:number], size)
            if len(chosen) == size or number >= len(ranked):
                return chosen
            number *= 2  # too many were alike; try the next best

    def _choose(self, sentence: str, contexts: np.ndarray, size: int) -> np.ndarray:
        """Return the best of these contexts by fit score, within the constraints of the strategy."""
        (scores,) = self.scorer.score([sentence], self.index.contexts(contexts))
        contexts = contexts[np.argsort(-scores, kind="stable")]
        if self.settings.strategy == "no_diversity":
            return contexts[:size]
        store = self.index.chunks
        likeness = jaccard(store.pick(contexts - 1))
        return contexts[select(store.chunks_of(contexts), likeness, size, self.settings.max_jaccard)]

    def _draw(self, sentence: str) -> np.ndarray:
        """Draw contexts of random chunks, the same for the same seed and sentence."""
        key = xxhash.xxh3_64_intdigest(sentence.encode("utf-8", "surrogatepass"))
        rng = np.random.default_rng((self.settings.seed, key))
        store = self.index.chunks
        chunks = rng.choice(store.num_chunks, size=min(store.num_chunks, self.settings.num_contexts), replace=False)
        contexts = rng.integers(*store.context_ranges(chunks))
        return self.index.without(np.array([sentence_key(sentence)], np.uint64), contexts)
