"""Why two sentences are as alike as they are: the contexts both fit, and those that one of them fits better.

A fit is given in deviations above the background's mean in the same context, so that 0 is how any sentence fits.
"""

import textwrap
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from ctxsim_hf.origin.comparison import comparable
from ctxsim_hf.origin.context_index import ContextIndex
from ctxsim_hf.origin.fit_score import ContextScorer
from ctxsim_hf.origin.similarity import PairScores
from ctxsim_hf.text.chunks import Chunk, Context

SHOWN = 3
WIDTH = 110


@dataclass(frozen=True)
class ContextFit:
    """A context and how well each of the two sentences fits it."""

    context: Context
    doc_id: str
    source: str
    found_for: tuple[int, ...]  # whose set it is in: of sentence 1, 2 or both
    fit: tuple[float, float]  # in deviations above the background
    terms: dict[str, tuple[float, float]]  # the terms of Eq. 3, without their weights
    counted: frozenset[str]  # those of them that have a weight

    def __str__(self) -> str:
        lines = [f"  {self.doc_id}   fit {self.fit[0]:+.1f} and {self.fit[1]:+.1f}"]
        text = f"{' '.join(self.context.left)} [...] {' '.join(self.context.right)}"
        lines += textwrap.wrap(text, WIDTH, initial_indent="    ", subsequent_indent="    ")
        terms = [(name, f"{name} {first:.2f}, {second:.2f}") for name, (first, second) in self.terms.items()]
        return "\n".join([*lines, "    " + "   ".join(t if name in self.counted else f"({t})" for name, t in terms)])


@dataclass(frozen=True)
class Explanation:
    sentence1: str
    sentence2: str
    similarity: float
    spread: float
    directional: tuple[float, float]  # over the contexts of either sentence alone
    by_contexts: float  # the similarity, where words have no weight
    lexical: float | None  # that by words, where it has a weight
    num_contexts: tuple[int, int]
    both: list[ContextFit]
    first_better: list[ContextFit]
    second_better: list[ContextFit]

    def __str__(self) -> str:
        parts = "" if self.lexical is None else f" (by contexts {self.by_contexts:.3f}, by words {self.lexical:.3f})"
        lines = [
            f"1  {self.sentence1}",
            f"2  {self.sentence2}",
            f"similarity {self.similarity:.3f}{parts}, spread {self.spread:.3f}",
            f"over the {self.num_contexts[0]} contexts of 1 alone {self.directional[0]:.3f}, "
            f"over the {self.num_contexts[1]} of 2 alone {self.directional[1]:.3f}",
            "fit: of 1 and of 2, in deviations above other sentences in that context",
            "below it the terms of the score, in brackets those that do not count",
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
    index: ContextIndex,
    scorer: ContextScorer,
    counted: Collection[str],
) -> Explanation:
    """Args: as in `Explanation`; `scorer` answers every term that is to be shown, those that do not count too."""
    fits = comparable("zscore", pair.scores, pair.background)  # (2, contexts)
    found_for: dict[int, tuple[int, ...]] = {}  # a context may be in both sets, and is shown once
    for place, context in enumerate(pair.contexts.tolist()):
        found_for[context] = (*found_for.get(context, ()), 1 if place < pair.found_for_first else 2)
    _, different = np.unique(pair.contexts, return_index=True)
    first, second = fits[:, different]
    lists = {
        "both": different[_best(np.minimum(first, second), (first > 0) & (second > 0))],
        "first_better": different[_best(first - second, (first > 0) & (first > second))],
        "second_better": different[_best(second - first, (second > 0) & (second > first))],
    }
    prepared = scorer.prepare_sentences([sentence1, sentence2])

    def describe(places: np.ndarray) -> list[ContextFit]:
        contexts = pair.contexts[places]
        terms = scorer.terms(prepared, scorer.prepare_contexts(index.tokens(contexts)))
        texts = index.text(contexts)
        return [
            ContextFit(
                *_context(*text, index.width),
                found_for=found_for[int(pair.contexts[place])],
                fit=(float(fits[0, place]), float(fits[1, place])),
                terms={name: (float(values[0, row]), float(values[1, row])) for name, values in terms.items()},
                counted=frozenset(counted),
            )
            for row, (place, text) in enumerate(zip(places, texts, strict=True))
        ]

    return Explanation(
        sentence1,
        sentence2,
        pair.similarity,
        pair.spread,
        pair.directional,
        pair.by_contexts,
        None if np.isnan(pair.lexical) else pair.lexical,
        (pair.found_for_first, len(pair.contexts) - pair.found_for_first),
        **{name: describe(places) for name, places in lists.items()},
    )


def _best(order: np.ndarray, eligible: np.ndarray) -> np.ndarray:
    """The places that come first in this order."""
    places = np.argsort(-order, kind="stable")
    return places[eligible[places]][:SHOWN]


def _context(chunk: Chunk, position: int, width: int) -> tuple[Context, str, str]:
    """The context there, its document and its source."""
    left, right = chunk.sentences[max(0, position - width) : position], chunk.sentences[position + 1 :][:width]
    return Context(chunk.chunk_id, position, left, chunk.sentences[position], right), chunk.doc_id, chunk.source
