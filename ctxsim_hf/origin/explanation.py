"""Explain a similarity by the contexts that both sentences fit, and those that one of them fits better.

A fit is given in standard deviations above the background's mean in the same context, so that 0 is the fit of an
average sentence.
"""

import textwrap
from dataclasses import dataclass, field

import numpy as np

from ctxsim_hf.origin.comparison import comparable
from ctxsim_hf.origin.context_index import ContextIndex
from ctxsim_hf.origin.contexts_signal import ContextComparison
from ctxsim_hf.origin.fit_score import ContextScorer
from ctxsim_hf.origin.pair_scores import PairScores
from ctxsim_hf.origin.suggested_words import SuggestedWords
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
    signals: dict[str, float]  # what each signal says
    shares: dict[str, float]  # how much each counts, together 1
    words: SuggestedWords | None  # where a language model suggests words
    directional: tuple[float, float] | None = None  # by the contexts of either sentence alone, where contexts count
    num_contexts: tuple[int, int] = (0, 0)
    both: list[ContextFit] = field(default_factory=list)
    first_better: list[ContextFit] = field(default_factory=list)
    second_better: list[ContextFit] = field(default_factory=list)

    def __str__(self) -> str:
        named = [f"{name} {value:.3f} x {self.shares[name]:.0%}" for name, value in self.signals.items()]
        parts = f" ({', '.join(named)})" if len(named) > 1 else ""
        lines = [
            f"1  {self.sentence1}",
            f"2  {self.sentence2}",
            f"similarity {self.similarity:.3f}{parts}" + (f", spread {self.spread:.3f}" if self.spread else ""),
        ]
        if self.directional is not None:
            lines.append(
                f"over the {self.num_contexts[0]} contexts of 1 alone {self.directional[0]:.3f}, "
                f"over the {self.num_contexts[1]} of 2 alone {self.directional[1]:.3f}"
            )
        if self.words is not None:
            lines += ["", str(self.words)]
        if not any(self.num_contexts):
            return "\n".join(lines)
        lines += [
            "",
            "Contexts from the documents. Fit: of 1 and of 2, in standard deviations above other sentences there;",
            "below it the terms of the score, in brackets those that do not count.",
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
    contexts: ContextComparison | None,
    index: ContextIndex,
    scorer: ContextScorer | None,
    words: SuggestedWords | None = None,
) -> Explanation:
    """Explain the similarity of two sentences.

    Args:
        sentence1, sentence2 (`str`): The sentences.
        pair (`PairScores`): What the origin says of them.
        contexts (`ContextComparison`, *optional*): What retrieved contexts say of them. None shows no contexts.
        index (`ContextIndex`): Where the contexts stand.
        scorer (`ContextScorer`, *optional*): Answers every term that is to be shown, those that do not count too.
        words (`SuggestedWords`, *optional*): What a language model suggests.
    """
    about = (sentence1, sentence2, pair.similarity, pair.spread, pair.signals, pair.shares, words)
    if contexts is None or scorer is None:
        return Explanation(*about)
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
        *about,
        contexts.directional if pair.contexts is not None else None,
        (contexts.found_for_first, len(contexts.contexts) - contexts.found_for_first),
        *(describe(places) for places in lists.values()),
    )


def _best(order: np.ndarray, eligible: np.ndarray) -> np.ndarray:
    """Return the places of the highest values that are eligible."""
    places = np.argsort(-order, kind="stable")
    return places[eligible[places]][:SHOWN]
