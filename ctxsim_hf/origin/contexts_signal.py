"""Compare two sentences by the contexts they fit (Eq. 4): the signal `contexts`."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from tqdm import tqdm

from ctxsim_hf.origin.comparison import comparable, context_spread, cosine
from ctxsim_hf.origin.context_index import ContextIndex
from ctxsim_hf.origin.context_set import ContextSets
from ctxsim_hf.origin.fit_score import ContextScorer, Prepared
from ctxsim_hf.origin.settings import OriginSettings
from ctxsim_hf.runtime.threads import no_spinning

logger = logging.getLogger(__name__)

REMEMBERED_CONTEXTS = 5000  # prepared, with background scores; half a MB each for a large seq2seq generator


@dataclass(frozen=True)
class JudgedContexts:
    """The context set of one sentence, ready to score any sentence in it."""

    contexts: np.ndarray
    prepared: Prepared
    _score_background: Callable[[Prepared], dict[str, np.ndarray]]

    @cached_property
    def background(self) -> dict[str, np.ndarray]:
        """Scores of the background sentences by term, (background, contexts); computed on demand."""
        return self._score_background(self.prepared)


@dataclass(frozen=True)
class ContextComparison:
    """The contexts of a pair, those of the first sentence first, and the scores of both sentences in them."""

    settings: OriginSettings
    contexts: np.ndarray
    found_for_first: int
    terms: dict[str, np.ndarray]  # term -> (2, contexts)
    judged: Sequence[JudgedContexts]  # the sets of the two sentences

    @cached_property
    def scores(self) -> np.ndarray:
        """S of the two sentences, (2, contexts)."""
        return self.settings.weights.combine(self.terms)

    @cached_property
    def background(self) -> np.ndarray:
        """S of the background sentences, (background, contexts)."""
        return self.settings.weights.combine(_side_by_side([found.background for found in self.judged]))

    @cached_property
    def vectors(self) -> np.ndarray:
        """The vectors whose cosine is the similarity, (2, contexts)."""
        return self._vectors(slice(None))

    @cached_property
    def similarity(self) -> float:
        """The similarity of the two sentences."""
        return cosine(*self.vectors)

    @property
    def spread(self) -> float:
        """Standard deviation of the similarity over draws of contexts, the whitening held fixed."""
        first, second = self.vectors
        return context_spread(first, second, self.settings.seed)

    @property
    def directional(self) -> tuple[float, float]:
        """The cosine over the contexts of the first sentence alone, and over those of the second alone."""
        parts = slice(0, self.found_for_first), slice(self.found_for_first, None)
        first, second = (cosine(*self._vectors(contexts)) for contexts in parts)
        return first, second

    def similarity_without(self, place: int) -> float:
        """Return the similarity by all contexts but one."""
        return cosine(*self._vectors(np.delete(np.arange(len(self.contexts)), place)))

    def _vectors(self, contexts: slice | np.ndarray) -> np.ndarray:
        settings, scores = self.settings, self.scores[:, contexts]
        if settings.compare_by == "cosine":
            return scores
        return comparable(settings.compare_by, scores, self.background[:, contexts], settings.ridge)


class ContextsSignal:
    """The similarity of sentences by the contexts they fit.

    Args:
        index (`ContextIndex`): The contexts of a corpus.
        scorer (`ContextScorer`): Scores sentences in contexts.
        sets (`ContextSets`): Chooses the contexts of each sentence.
        background (`Sequence[str]`): Sentences that a fit is compared with.
        settings (`OriginSettings`): Number of contexts, and how scores are compared.
    """

    def __init__(
        self,
        index: ContextIndex,
        scorer: ContextScorer,
        sets: ContextSets,
        background: Sequence[str],
        settings: OriginSettings,
    ) -> None:
        self.index, self.scorer, self.sets, self.settings = index, scorer, sets, settings
        self._background = background
        self._judged: OrderedDict[str, JudgedContexts] = OrderedDict()
        self._lock = threading.Lock()

    @cached_property
    def background(self) -> Prepared:
        """The background sentences, prepared."""
        return self.scorer.prepare_sentences(self._background)

    def similarity(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> np.ndarray:
        """Return the similarity of each pair, (pairs,)."""
        return np.array([pair.similarity for pair in self.compare(sentences1, sentences2)], dtype=np.float64)

    def compare(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> Iterator[ContextComparison]:
        """Yield the contexts and scores of each pair."""
        pairs = list(zip(sentences1, sentences2, strict=True))
        few: set[str] = set()
        for pair in tqdm(pairs, desc="similarity", unit="pair", disable=None if len(pairs) > 1 else True):
            comparison = self._compare(pair)
            few |= {
                sentence
                for sentence, found in zip(pair, comparison.judged, strict=True)
                if len(found.contexts) < self.settings.num_contexts
            }
            yield comparison
        if few:
            wanted = self.settings.num_contexts
            logger.warning(f"{len(few)} sentences have fewer than {wanted} contexts, e.g. {min(few)[:80]!r}")

    @no_spinning()
    def _compare(self, pair: tuple[str, str]) -> ContextComparison:
        judged = [self._judge(sentence) for sentence in pair]
        prepared = self.scorer.prepare_sentences(pair)
        return ContextComparison(
            self.settings,
            np.concatenate([found.contexts for found in judged]),
            len(judged[0].contexts),
            _side_by_side([self.scorer.terms(prepared, found.prepared) for found in judged]),
            judged,
        )

    def background_scores(self, contexts: Prepared) -> np.ndarray:
        """Return S of the background sentences, (background, contexts); empty if the comparison ignores them."""
        if self.settings.compare_by == "cosine":
            return np.zeros((0, 0))
        return self.scorer.weights.combine(self.scorer.terms(self.background, contexts))

    def _judge(self, sentence: str) -> JudgedContexts:
        with self._lock:
            found = self._judged.get(sentence)
        if found is None:
            (contexts,) = self.sets([sentence])
            prepared = self.scorer.prepare_contexts(self.index.contexts(contexts))
            found = JudgedContexts(contexts, prepared, partial(self.scorer.terms, self.background))
        with self._lock:
            self._judged[sentence] = found
            self._judged.move_to_end(sentence)
            while len(self._judged) * self.settings.num_contexts > REMEMBERED_CONTEXTS and len(self._judged) > 2:
                self._judged.popitem(last=False)
        return found


def _side_by_side(parts: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Join the terms over the contexts of both sentences."""
    return {term: np.concatenate([part[term] for part in parts], axis=1) for term in parts[0]}
