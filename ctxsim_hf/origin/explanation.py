"""Hold and show an explanation: as text, and as HTML in a notebook or a file.

A fit is given in standard deviations above the background's mean in the same context, so that 0 is the fit of an
average sentence. The effect of a context is how much the similarity would fall without it.
"""

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from ctxsim_hf.origin.faithfulness import Faithfulness
from ctxsim_hf.origin.suggested_words import SuggestedWords
from ctxsim_hf.text.chunks import Context
from ctxsim_hf.text.html_page import bar, fragment, mark_differences, mark_words, table, write_page

WIDTH = 110
GAP = '<span class="gap">1 or 2 here</span>'
MAX_FIT = 4.0  # standard deviations of a full bar
# What the signals of the package compare; one that was registered has only its name.
COMPARED = {
    "contexts": "how well they fit contexts of the documents",
    "words": "their own words",
    "cloze": "the words that a model expects near them",
    "encoder": "their vectors",
}


@dataclass(frozen=True)
class ContextFit:
    """A context and how well each of the two sentences fits it."""

    context: Context
    doc_id: str
    source: str
    found_for: tuple[int, ...]  # in the set of sentence 1, of 2, or of both
    fit: tuple[float, float]  # in standard deviations above the background
    terms: dict[str, tuple[float, float]]  # the terms of Eq. 3, without their weights
    effect: float | None = None  # on the similarity; None where contexts do not count
    words: tuple[str, ...] = ()  # of the context that matter most, in lower case

    def __str__(self) -> str:
        effect = "" if self.effect is None else f"   effect {self.effect:+.4f}"
        lines = [f"  {self.doc_id}   fit {self.fit[0]:+.1f} and {self.fit[1]:+.1f}{effect}"]
        text = f"{' '.join(self.context.left)} [...] {' '.join(self.context.right)}"
        lines += textwrap.wrap(text, WIDTH, initial_indent="    ", subsequent_indent="    ")
        return "\n".join([*lines, *([f"    marked words: {', '.join(self.words)}"] if self.words else [])])

    def html(self) -> str:
        """Return the context with the words that matter marked, and the fit of both sentences as bars."""
        left, right = (mark_words(" ".join(side), self.words) for side in (self.context.left, self.context.right))
        fits = "".join(
            f'<div class="quiet number">{number} fits {fit:+.1f}</div>{bar(fit / MAX_FIT)}'
            for number, fit in enumerate(self.fit, 1)
        )
        effect = "" if self.effect is None else f"effect {self.effect:+.4f}, "
        return (
            f'<div class="card">{left} {GAP} {right}{fits}<div class="quiet">{effect}{escape(self.doc_id)}</div></div>'
        )


@dataclass(frozen=True)
class Explanation:
    """A similarity and what it comes from: signals, words that a language model suggests, contexts."""

    sentence1: str
    sentence2: str
    similarity: float
    spread: float
    signals: dict[str, float]  # what each signal says
    shares: dict[str, float]  # how much each counts, together 1
    words: SuggestedWords | None  # where a language model suggests words
    meaning: str | None = None  # how the similarity compares with that of other pairs, where that is known
    directional: tuple[float, float] | None = None  # by the contexts of either sentence alone, where contexts count
    num_contexts: tuple[int, int] = (0, 0)
    both: list[ContextFit] = field(default_factory=list)
    first_better: list[ContextFit] = field(default_factory=list)
    second_better: list[ContextFit] = field(default_factory=list)
    faithfulness: Faithfulness | None = None  # of the effects, where contexts count

    @property
    def groups(self) -> dict[str, list[ContextFit]]:
        """The shown contexts by who fits them."""
        return {"both fit": self.both, "1 fits better": self.first_better, "2 fits better": self.second_better}

    def __str__(self) -> str:
        lines = [f"1  {self.sentence1}", f"2  {self.sentence2}", *self._score_lines()]
        if self.words is not None:
            lines += ["", str(self.words)]
        if not any(self.num_contexts):
            return "\n".join(lines)
        lines += [
            "",
            "Contexts from the documents. Fit: of 1 and of 2, in standard deviations above other sentences there.",
        ]
        for title, contexts in self.groups.items():
            lines += ["", title, *(map(str, contexts) if contexts else ["  no context"])]
        return "\n".join([*lines, *(["", str(self.faithfulness)] if self.faithfulness else [])])

    __repr__ = __str__  # in a Python shell too

    def _score_lines(self) -> Iterator[str]:
        named = [f"{name} {value:.3f} x {self.shares[name]:.0%}" for name, value in self.signals.items()]
        parts = f" ({', '.join(named)})" if len(named) > 1 else ""
        yield f"similarity {self.similarity:.3f}{parts}" + (f", spread {self.spread:.3f}" if self.spread else "")
        if self.meaning is not None:
            yield self.meaning
        if self.directional is not None:
            yield (
                f"over the {self.num_contexts[0]} contexts of 1 alone {self.directional[0]:.3f}, "
                f"over the {self.num_contexts[1]} of 2 alone {self.directional[1]:.3f}"
            )

    def _repr_html_(self) -> str:
        return fragment(self.html())

    def to_html(self, file: str | Path) -> None:
        """Write a page that needs nothing but itself."""
        write_page(file, f"Similarity {self.similarity:.3f}", self.html())

    def html(self) -> str:
        """Return the explanation as HTML without a style."""
        sentences = mark_differences(self.sentence1, self.sentence2)
        cards = (f'<div class="card"><b>{number}</b> {text}</div>' for number, text in enumerate(sentences, 1))
        spread = (
            f' <span class="quiet">± {self.spread:.3f} when other contexts are drawn</span>' if self.spread else ""
        )
        # A similarity has no scale of its own, so that a bar would mislead where something better is known.
        meaning = f"<p><b>{escape(self.meaning)}</b></p>" if self.meaning else bar(self.similarity)
        return (
            f'<div class="two">{"".join(cards)}</div><h2>Similarity {self.similarity:.3f}{spread}</h2>'
            f"{meaning}{self._signals_html()}{self._words_html()}{self._contexts_html()}"
        )

    def _signals_html(self) -> str:
        if len(self.signals) < 2:
            return ""
        rows = (
            [
                f'{escape(name)} <span class="quiet">{COMPARED.get(name, "")}</span>',
                f'<span class="number">{value:.3f}</span>',
                f'<span class="number">{self.shares[name]:.0%}</span>',
                f'<span class="number">{value * self.shares[name]:+.3f}</span>{bar(value * self.shares[name])}',
            ]
            for name, value in self.signals.items()
        )
        return "<h2>Signals</h2>" + table(["signal", "says", "counts", "adds"], rows)

    def _words_html(self) -> str:
        if self.words is None:
            return ""
        columns = (
            f'<div class="card"><b>{name}</b><br>{escape(", ".join(found)) or "no word of the corpus"}</div>'
            for name, found in self.words.groups.items()
        )
        return f'<h2>Words that the sentences suggest</h2><div class="two">{"".join(columns)}</div>'

    def _contexts_html(self) -> str:
        if not any(self.num_contexts):
            return ""
        columns = (
            f"<div><h3>{title}</h3>{''.join(found.html() for found in contexts) or 'no context'}</div>"
            for title, contexts in self.groups.items()
        )
        note = (
            "Places in the documents where one of the sentences could stand. A fit is in standard deviations above "
            "other sentences there. Marked are the words that matter most for it or, where the model is too slow to "
            "test that, the words it shares with the sentences."
        )
        if self.directional is not None:  # contexts count
            note += " The effect is how much the similarity would fall without the context."
        parts = [
            f'<h2>Contexts from the documents</h2><p class="quiet">{note}</p><div class="two">{"".join(columns)}</div>'
        ]
        if self.directional is not None:
            first, second = self.directional
            parts.append(
                f'<p class="quiet">The {self.num_contexts[0]} contexts of 1 alone say {first:.3f}, '
                f"the {self.num_contexts[1]} of 2 alone {second:.3f}.</p>"
            )
        if self.faithfulness:
            parts.append(f'<p class="quiet">{escape(str(self.faithfulness))}.</p>')
        return "".join(parts)
