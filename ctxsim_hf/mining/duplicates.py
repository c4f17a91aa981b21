"""Sentences -> pairs of them that say the same: `ctxsim duplicates`."""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, astuple, dataclass, fields
from typing import ClassVar

from transformers.hf_argparser import HfArg

from ctxsim_hf.mining.findings import Findings
from ctxsim_hf.mining.mining_arguments import MiningArguments, Threshold
from ctxsim_hf.mining.pair_mining import mine_pairs
from ctxsim_hf.runtime.validation import Count
from ctxsim_hf.text.html_page import escape, mark_differences, table

SHOWN = 10  # pairs in a terminal


@dataclass(kw_only=True)
class DuplicatesArguments(MiningArguments):
    """The arguments of `ctxsim duplicates`."""

    max_pairs: Count = HfArg(default=500_000, help="The highest number of pairs: those of the highest similarity.")

    unrelated_neighbours: ClassVar[float] = 0.1


@dataclass(frozen=True)
class DuplicatePair:
    """Two sentences, and where each stands first."""

    sentence1: str
    sentence2: str
    score: float
    place1: str
    place2: str


@dataclass(frozen=True, repr=False)
class Duplicates(Findings):
    """Pairs of similar sentences, the most similar first."""

    title = "Duplicates"
    shown_in_notebook, shown_on_page = 50, 2000

    pairs: list[DuplicatePair]
    threshold: Threshold
    num_sentences: int
    num_repeated: int | None  # sentences that occur more than once, letter for letter; None if not counted

    def __len__(self) -> int:
        return len(self.pairs)

    def __iter__(self) -> Iterator[DuplicatePair]:
        return iter(self.pairs)

    @property
    def summary(self) -> str:
        """How many pairs there are, and what counts as one."""
        found = f"{len(self):,} pairs among {self.num_sentences:,} different sentences: {self.threshold}"
        if self.num_repeated is None:
            return found
        return f"{found}\n{self.num_repeated:,} sentences occur more than once, letter for letter"

    def __str__(self) -> str:
        # From the most to the least similar: the first ones alone would be copies with a word changed.
        some = self.pairs[:: math.ceil(len(self) / SHOWN) or 1]
        shown = [f"{pair.score:.3f}  {pair.sentence1}\n       {pair.sentence2}" for pair in some]
        title = [f"{len(some)} of them, from the most to the least similar:"] if len(some) < len(self) else []
        return "\n".join([self.summary, *title, *shown])

    def body(self, number: int) -> str:
        rows = ([f'<span class="number">{pair.score:.3f}</span>', *_cells(pair)] for pair in self.pairs[:number])
        rest = f" The first {number:,} are shown." if len(self) > number else ""
        summary = escape(self.summary).replace("\n", "<br>")
        return f"<p>{summary}.{rest}</p>{table(['similarity', 'first sentence', 'second sentence'], rows)}"

    def json_lines(self) -> Iterator[str]:
        yield from (json.dumps(asdict(pair), ensure_ascii=False) + "\n" for pair in self.pairs)

    def tab_lines(self) -> Iterator[str]:
        yield "\t".join(field.name for field in fields(DuplicatePair)) + "\n"
        for pair in self.pairs:
            cells = [f"{cell:.6f}" if isinstance(cell, float) else " ".join(cell.split()) for cell in astuple(pair)]
            yield "\t".join(cells) + "\n"


def _cells(pair: DuplicatePair) -> list[str]:
    sentences = mark_differences(pair.sentence1, pair.sentence2)
    return [
        f'{sentence}<div class="quiet">{escape(place)}</div>'
        for sentence, place in zip(sentences, (pair.place1, pair.place2), strict=True)
    ]


def run(arguments: DuplicatesArguments) -> Duplicates:
    """Find pairs, write them, and return them."""
    sentences = arguments.read()
    with arguments.vectors(sentences) as vectors:
        threshold = arguments.choose_threshold(vectors)
        mined = mine_pairs(vectors, threshold.similarity, arguments.max_pairs)
    texts, places = sentences.texts, sentences.places
    pairs = [
        DuplicatePair(texts[first], texts[second], score, places[first], places[second])
        for (first, second), score in zip(mined.places.tolist(), mined.similarities.tolist(), strict=True)
    ]
    found = Duplicates(pairs, threshold, len(sentences), sum(count > 1 for count in sentences.counts))
    for path in arguments.output:
        found.save(path)
    return found
