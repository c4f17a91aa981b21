"""For a sentence the contexts it is judged in, C_s: screened by TF-IDF, ranked by the discriminator, then by the fit
score, and taken one at a time so that no two resemble each other."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
import xxhash
from scipy.sparse import csr_array

from ctxsim_hf.origin.context_index import ContextIndex
from ctxsim_hf.origin.fit_score import ContextScorer
from ctxsim_hf.origin.settings import OriginSettings
from ctxsim_hf.origin.term_scorers import DiscriminatorScorer
from ctxsim_hf.runtime.files import writing
from ctxsim_hf.text.tokenized import TokenizedSentences, tokenize_sentences

CONTEXTS_PER_BLOCK = 1 << 11  # whose parts the ranking holds at a time


def jaccard(sentences: TokenizedSentences) -> np.ndarray:
    """Of every two sentences the tokens they share among all that either has, (sentences, sentences); two without
    tokens are alike."""
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
    """Places of at most `size` contexts, given best first: one from a chunk, and none whose sentence before the gap is
    as much as `max_jaccard` like that of one chosen already."""
    chosen: list[int] = []
    free = np.ones(len(chunks), dtype=bool)
    while len(chosen) < size and free.any():
        place = int(free.argmax())  # the best that is left
        chosen.append(place)
        free &= (chunks != chunks[place]) & (likeness[place] < max_jaccard)
        free[place] = False
    return chosen


@dataclass
class ContextSets:
    """Context sets by sentence, remembered."""

    index: ContextIndex
    scorer: ContextScorer
    discriminator: DiscriminatorScorer
    settings: OriginSettings
    made_with: str  # a fingerprint of models and index
    cache_folder: Path | None = None  # keep sets on disk too
    max_remembered: int = 100_000
    _remembered: OrderedDict[str, np.ndarray] = field(default_factory=OrderedDict)

    def __call__(self, sentences: Sequence[str]) -> Iterator[np.ndarray]:
        """The contexts of each sentence, best first; fewer than asked where the corpus has no more that differ."""
        for sentence in sentences:
            key = self._key(sentence)
            if key not in self._remembered:
                self._remember(key, self._load_or_build(key, sentence))
            yield self._remembered[key]

    def _key(self, sentence: str) -> str:
        settings = self.settings
        shaping = (
            *(sentence, self.made_with, settings.strategy, settings.num_contexts, settings.screen_chunks),
            *(settings.rerank_candidates, settings.max_jaccard, settings.seed, self.scorer.weights),
        )
        return xxhash.xxh3_128_hexdigest(repr(shaping).encode())

    def _remember(self, key: str, contexts: np.ndarray) -> None:
        self._remembered[key] = contexts
        if len(self._remembered) > self.max_remembered:
            self._remembered.popitem(last=False)

    def _load_or_build(self, key: str, sentence: str) -> np.ndarray:
        if self.cache_folder is None:
            return self._build(sentence)
        path = self.cache_folder / key[:2] / f"{key}.npy"
        if not path.exists():
            with writing(path, shared=True) as temporary, temporary.open("wb") as file:
                np.save(file, self._build(sentence))
        contexts: np.ndarray = np.load(path, allow_pickle=False)
        return contexts

    def _build(self, sentence: str) -> np.ndarray:
        if self.settings.strategy == "random":
            return self._draw(sentence)
        ((found, _),) = self.index.tfidf.search([sentence], self.settings.screen_chunks)
        ranked = self._rank(sentence, self.index.without(sentence, self.index.screened_contexts(np.sort(found))))
        size = self.settings.num_contexts
        number = size * self.settings.rerank_candidates
        while True:
            chosen = self._choose(sentence, ranked[:number], size)
            if len(chosen) == size or number >= len(ranked):
                return chosen
            number *= 2  # too many were alike: let the discriminator's next best try

    def _rank(self, sentence: str, contexts: np.ndarray) -> np.ndarray:
        """Contexts by falling discriminator score."""
        scores = torch.cat([torch.zeros(0), *self._discriminator_scores(sentence, contexts)])
        return contexts[torch.argsort(scores, descending=True, stable=True).numpy()]

    @torch.inference_mode()
    def _discriminator_scores(self, sentence: str, contexts: np.ndarray) -> Iterator[torch.Tensor]:
        model = self.discriminator.model
        part = self.discriminator.prepare_sentences(tokenize_sentences(self.scorer.tokenizer, [sentence]))  # (1, part)
        rows = self.index.rows(contexts)
        for start in range(0, len(rows), CONTEXTS_PER_BLOCK):
            parts = torch.from_numpy(self.index.parts[rows[start : start + CONTEXTS_PER_BLOCK]])
            yield model.score_parts(parts.to(part.device).float(), part).cpu()

    def _choose(self, sentence: str, contexts: np.ndarray, size: int) -> np.ndarray:
        """The best of these contexts by the fit score, with the constraints of the strategy."""
        (scores,) = self.scorer.score([sentence], self.index.tokens(contexts))
        contexts = contexts[np.argsort(-scores, kind="stable")]
        if self.settings.strategy == "no_diversity":
            return contexts[:size]
        store = self.index.chunks
        likeness = jaccard(store.pick(contexts - 1))
        return contexts[select(store.chunks_of(contexts), likeness, size, self.settings.max_jaccard)]

    def _draw(self, sentence: str) -> np.ndarray:
        """Contexts of as many chunks drawn from the whole corpus, the same for the same seed and sentence."""
        key = xxhash.xxh3_64_intdigest(sentence.encode("utf-8", "surrogatepass"))
        rng = np.random.default_rng((self.settings.seed, key))
        number = len(self.index.chunks.chunk_starts) - 1
        chunks = rng.choice(number, size=min(number, self.settings.num_contexts), replace=False)
        firsts, ends = self.index.chunks.chunk_starts[chunks] + 1, self.index.chunks.chunk_starts[chunks + 1] - 1
        return self.index.without(sentence, rng.integers(firsts, ends))
