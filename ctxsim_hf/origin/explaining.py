"""Explain a similarity by the contexts that both sentences fit, and those that one of them fits better."""

from collections.abc import Sequence

import numpy as np

from ctxsim_hf.origin.comparison import comparable
from ctxsim_hf.origin.context_index import ContextIndex
from ctxsim_hf.origin.contexts_signal import ContextComparison
from ctxsim_hf.origin.explanation import ContextFit, Explanation
from ctxsim_hf.origin.faithfulness import context_effects, measure_faithfulness
from ctxsim_hf.origin.fit_score import ContextScorer
from ctxsim_hf.origin.pair_scores import PairScores
from ctxsim_hf.origin.signals import CONTEXTS
from ctxsim_hf.origin.suggested_words import SuggestedWords
from ctxsim_hf.origin.telling_words import shared_words, telling_words
from ctxsim_hf.text.chunks import Context

SHOWN = 3  # contexts of each group
# Whose fit the words of a context are to explain: both sentences', or how much better one of them fits.
WEIGHTS = {"both": (0.5, 0.5), "first_better": (1, -1), "second_better": (-1, 1)}


class ContextExplainer:
    """
    Args:
        index (`ContextIndex`): Where the contexts stand.
        shown (`ContextScorer`): Answers every term that is to be shown, those that do not count too.
        counted (`ContextScorer`, *optional*): Scores changed contexts, to find the words that matter. None marks the
            words that a context shares with the sentences.
        background (`Sequence[str]`): Sentences that a fit is compared with.
    """

    def __init__(
        self, index: ContextIndex, shown: ContextScorer, counted: ContextScorer | None, background: Sequence[str]
    ) -> None:
        self.index, self.shown, self.counted, self.background = index, shown, counted, background

    def groups(
        self, sentences: tuple[str, str], compared: ContextComparison, share: float | None
    ) -> dict[str, list[ContextFit]]:
        """Return the contexts to show, by group.

        Args:
            sentences (`tuple[str, str]`): The sentences.
            compared (`ContextComparison`): What retrieved contexts say of them.
            share (`float`, *optional*): Share of the contexts in the similarity. None if they do not count.
        """
        fits = comparable("zscore", compared.scores, compared.background)  # (2, contexts)
        effects = None if share is None else share * context_effects(compared.vectors)
        _, different = np.unique(compared.contexts, return_index=True)
        first, second = fits[:, different]
        both = _best(np.minimum(first, second), (first > 0) & (second > 0))
        left = np.ones(len(different), dtype=bool)
        left[both] = False  # what both fit is not shown again
        chosen = {
            "both": both,
            "first_better": _best(first - second, left & (first > 0) & (first > second)),
            "second_better": _best(second - first, left & (second > 0) & (second > first)),
        }
        return {
            name: self._describe(sentences, compared, different[places], fits, effects, WEIGHTS[name])
            for name, places in chosen.items()
        }

    def _describe(
        self,
        sentences: tuple[str, str],
        compared: ContextComparison,
        places: np.ndarray,
        fits: np.ndarray,
        effects: np.ndarray | None,
        weights: tuple[float, float],
    ) -> list[ContextFit]:
        numbers = compared.contexts[places]
        prepared = self.shown.prepare_sentences(sentences)
        terms = self.shown.terms(prepared, self.shown.prepare_contexts(self.index.contexts(numbers)))
        texts = self.index.context_texts(numbers)
        marked = self._words(sentences, [context for context, _ in texts], weights)
        return [
            ContextFit(
                context,
                chunk.doc_id,
                chunk.source,
                found_for=_found_for(compared, number),
                fit=(float(fits[0, place]), float(fits[1, place])),
                terms={name: (float(values[0, row]), float(values[1, row])) for name, values in terms.items()},
                effect=None if effects is None else float(effects[compared.contexts == number].sum()),
                words=marked[row],
            )
            for row, (place, number, (context, chunk)) in enumerate(zip(places, numbers.tolist(), texts, strict=True))
        ]

    def _words(
        self, sentences: tuple[str, str], contexts: list[Context], weights: tuple[float, float]
    ) -> list[tuple[str, ...]]:
        if self.counted is None:
            return shared_words(sentences, contexts, self.background)
        return telling_words(sentences, contexts, weights, self.counted, self.background)


def explain(
    sentence1: str,
    sentence2: str,
    pair: PairScores,
    contexts: ContextComparison | None,
    explainer: ContextExplainer | None,
    words: SuggestedWords | None = None,
    meaning: str | None = None,
) -> Explanation:
    """Explain the similarity of two sentences.

    Args:
        sentence1, sentence2 (`str`): The sentences.
        pair (`PairScores`): What the origin says of them.
        contexts (`ContextComparison`, *optional*): What retrieved contexts say of them. None shows no contexts.
        explainer (`ContextExplainer`, *optional*): Chooses and describes contexts. None shows no contexts.
        words (`SuggestedWords`, *optional*): What a language model suggests.
        meaning (`str`, *optional*): How the similarity compares with that of other pairs.
    """
    about = (sentence1, sentence2, pair.similarity, pair.spread, pair.signals, pair.shares, words, meaning)
    if contexts is None or explainer is None:
        return Explanation(*about)
    counts = pair.contexts is not None
    groups = explainer.groups((sentence1, sentence2), contexts, pair.shares[CONTEXTS] if counts else None)
    return Explanation(
        *about,
        directional=contexts.directional if counts else None,
        num_contexts=(contexts.found_for_first, len(contexts.contexts) - contexts.found_for_first),
        both=groups["both"],
        first_better=groups["first_better"],
        second_better=groups["second_better"],
        faithfulness=measure_faithfulness(contexts) if counts else None,
    )


def _found_for(compared: ContextComparison, context: int) -> tuple[int, ...]:
    """Return the sentences in whose sets a context is; one that is in both is shown once."""
    sets = compared.contexts[: compared.found_for_first], compared.contexts[compared.found_for_first :]
    return tuple(number for number, members in enumerate(sets, 1) if context in members)


def _best(order: np.ndarray, eligible: np.ndarray) -> np.ndarray:
    """Return the places of the highest values that are eligible."""
    places = np.argsort(-order, kind="stable")
    return places[eligible[places]][:SHOWN]
