"""Explain a similarity by the contexts that both sentences fit, and those that one of them fits better.

A fit is given in standard deviations above the background's mean in the same context, so that 0 is the fit of an
average sentence.
"""

import textwrap
from dataclasses import dataclass

import numpy as np

from ctxsim_hf.origin.comparison import comparable
from ctxsim_hf.origin.context_index import ContextIndex
from ctxsim_hf.origin.contexts_signal import ContextComparison
from ctxsim_hf.origin.fit_score import ContextScorer
from ctxsim_hf.origin.pair_scores import PairScores
from ctxsim_hf.text.chunks import Context

SHOWN = 3
WIDTH = 110


@dataclass(frozen=True)
class ContextFit:
    """A context and how well each of the two sentences fits it."""

    context: Context
    doc_id: str
    source: str
    found_for: tuple[int, ...]  # in the set of sentence 1, of 2, or of both
    fit: tuple[float, float]  # in standard deviations above the background
    terms: dict[str, tuple[float, float]]  # the terms of Eq. 3, without their weights
    counted: frozenset[str]  # the terms that have a weight

    def __str__(self) -> str:
        lines = [f"  {self.doc_id}   fit {self.fit[0]:+.1f} and {self.fit[1]:+.1f}"]
        text = f"{' '.join(self.context.left)} [...] {' '.join(self.context.right)}"
        lines += textwrap.wrap(text, WIDTH, initial_indent="    ", subsequent_indent="    ")
        terms = [(name, f"{name} {first:.2f}, {second:.2f}") for name, (first, second) in self.terms.items()]
        return "\n".join([*lines, "    " + "   ".join(t if name in self.counted else f"({t})" for name, t in terms)])


@dataclass(frozen=True)
class Explanation:
    """A similarity and the contexts that explain it."""

    sentence1: str
    sentence2: str
    similarity: float
    spread: float
    directional: tuple[float, float]  # over the contexts of each sentence alone
    signals: dict[str, float]  # the value of each signal
    shares: dict[str, float]  # the share of each, which add up to 1
    num_contexts: tuple[int, int]
    both: list[ContextFit]
    first_better: list[ContextFit]
    second_better: list[ContextFit]

    def __str__(self) -> str:
        named = [f"{name} {value:.3f} x {self.shares[name]:.0%}" for name, value in self.signals.items()]
        parts = f" ({', '.join(named)})" if len(named) > 1 else ""
        lines = [
            f"1  {self.sentence1}",
            f"2  {self.sentence2}",
            f"similarity {self.similarity:.3f}{parts}, spread {self.spread:.3f}",
            f"over the {self.num_contexts[0]} contexts of 1 alone {self.directional[0]:.3f}, "
            f"over the {self.num_contexts[1]} of 2 alone {self.directional[1]:.3f}",
            "fit: of 1 and of 2, in standard deviations above other sentences in that context",
            "below it the terms of the score; those in brackets do not count",
        ]
        for title, contexts in (
            ("both fit", self.both),
            ("1 fits better", self.first_better),
            ("2 fits better", self.second_better),
        ):
            lines += ["", title, *(map(str, contexts) if contexts else ["  no context"])]
        return "\n".join(lines)


def explain(
    sentence1: str,
    sentence2: str,
    pair: PairScores,
    contexts: ContextComparison,
    index: ContextIndex,
    scorer: ContextScorer,
) -> Explanation:
    """Explain the similarity of two sentences.

    Args:
        sentence1, sentence2 (`str`): The sentences.
        pair (`PairScores`): Their similarity and its signals.
        contexts (`ContextComparison`): Their scores in contexts.
        index (`ContextIndex`): The index that the contexts are in.
        scorer (`ContextScorer`): Answers every term to be shown, including those that do not count.
    """
    fits = comparable("zscore", contexts.scores, contexts.background)  # (2, contexts)
    found_for: dict[int, tuple[int, ...]] = {}  # a context may be in both sets, and is shown once
    for place, context in enumerate(contexts.contexts.tolist()):
        found_for[context] = (*found_for.get(context, ()), 1 if place < contexts.found_for_first else 2)
    _, different = np.unique(contexts.contexts, return_index=True)
    first, second = fits[:, different]
    lists = {
        "both": different[_best(np.minimum(first, second), (first > 0) & (second > 0))],
        "first_better": different[_best(first - second, (first > 0) & (first > second))],
        "second_better": different[_best(second - first, (second > 0) & (second > first))],
    }
    prepared = scorer.prepare_sentences([sentence1, sentence2])

    def describe(places: np.ndarray) -> list[ContextFit]:
        numbers = contexts.contexts[places]
        terms = scorer.terms(prepared, scorer.prepare_contexts(index.contexts(numbers)))
        texts = index.context_texts(numbers)
        return [
            ContextFit(
                context,
                chunk.doc_id,
                chunk.source,
                found_for=found_for[int(contexts.contexts[place])],
                fit=(float(fits[0, place]), float(fits[1, place])),
                terms={name: (float(values[0, row]), float(values[1, row])) for name, values in terms.items()},
                counted=frozenset(contexts.terms),
            )
            for row, (place, (context, chunk)) in enumerate(zip(places, texts, strict=True))
        ]

    return Explanation(
        sentence1,
        sentence2,
        pair.similarity,
        pair.spread,
        contexts.directional,
        pair.signals,
        pair.shares,
        (contexts.found_for_first, len(contexts.contexts) - contexts.found_for_first),
        **{name: describe(places) for name, places in lists.items()},
    )


def _best(order: np.ndarray, eligible: np.ndarray) -> np.ndarray:
    """Return the places of the highest values that are eligible."""
    places = np.argsort(-order, kind="stable")
    return places[eligible[places]][:SHOWN]
