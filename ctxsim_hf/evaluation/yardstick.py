"""The yardstick: how well a similarity tells pairs of held-out sentences apart, with the topic held fixed.

Neighbours in a text are more alike than sentences of different texts, but a similarity that knows nothing but topics
can tell that too. So both questions compare sentences on one topic:

| question | related pair | unrelated pair |
|---|---|---|
| `passage` | a sentence and the next one | the sentence and one six places or more after it, in the same document |
| `lookalike` | a sentence and one 2 to 10 places later | the sentence and one of the most similar other document |

All related pairs are held against all unrelated ones (AUC), since people compare pairs with pairs too: a similarity to
which some sentences are near to everything loses. The yardstick is the mean of both. docs/experiments.md has how well
it agrees with people, beside other questions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Self

import numpy as np

from ctxsim_hf.evaluation.examples import LabelledPairs
from ctxsim_hf.evaluation.label_measures import auc, measure_labels
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.estimates import Estimate, mean_estimate
from ctxsim_hf.text.lexical import TfidfCosine
from ctxsim_hf.text.words import words

YARDSTICK, PASSAGE, LOOKALIKE = "yardstick", "passage", "lookalike"
MEANINGS = {
    YARDSTICK: "the mean of passage and lookalike",
    PASSAGE: "a sentence and the next one, against the same and one 6 places or more after it",
    LOOKALIKE: "two sentences of a document, against one of them and one of the most similar other document",
}
FAR = 6  # places, from which on a sentence of the same document counts as unrelated
MAX_DISTANCE = 10  # places, up to which it counts as related
NUM_WORDS = (4, 60)  # of a sentence that is asked about
COMPARED_SENTENCES = 30  # at the start of a document, by which the most similar one is found
MIN_PAIRS = 20  # related pairs, below which a question says nothing

Documents = Sequence[Sequence[str]]  # sentences, document by document
Row = tuple[str, str, str]  # a sentence, a related and an unrelated one


@dataclass(frozen=True)
class Question(LabelledPairs):
    """Related pairs, label 1, and as many unrelated ones, label 0, drawn from documents."""

    @property
    def remarks(self) -> Sequence[str]:
        return ()

    def judge(self, scores: np.ndarray) -> dict[str, Estimate]:
        return {auc.__name__: measure_labels(auc, scores, self.scores)}


@dataclass(frozen=True)
class Yardstick:
    """Questions that count alike."""

    task: str
    split: str
    questions: Sequence[Question]

    @property
    def remarks(self) -> Sequence[str]:
        if len(self.questions) > 1:
            return ()
        return [
            f"the held-out documents are too short for all questions, so the yardstick is {self.questions[0].task}"
        ]

    def __len__(self) -> int:
        return sum(map(len, self.questions))

    def pairs(self) -> tuple[list[str], list[str]]:
        sides = [question.pairs() for question in self.questions]
        first, second = ([sentence for pairs in sides for sentence in pairs[side]] for side in (0, 1))
        return first, second

    def judge(self, scores: np.ndarray) -> dict[str, Estimate]:
        parts = np.split(scores, np.cumsum([len(question) for question in self.questions])[:-1])
        found = [question.judge(part)["auc"] for question, part in zip(self.questions, parts, strict=True)]
        return {"auc": mean_estimate(found)}

    def some(self, number: int) -> Self:
        share = max(1, number // len(self.questions))
        return replace(self, questions=[question.some(share) for question in self.questions])


def yardstick(documents: Documents, split: str, number: int, seed: int = 0) -> Yardstick:
    """Draw the questions.

    Args:
        documents: The sentences of each held-out document, in order.
        split (`str`): Name of the split they are of.
        number (`int`): Related pairs of each question, at most.
        seed (`int`): Random seed of the choice.
    """
    # Each with random numbers of its own, so that more pairs begin with those of fewer.
    rngs = [np.random.default_rng((seed, place)) for place in range(2)]
    asked = {PASSAGE: _passages(documents, rngs[0]), LOOKALIKE: _lookalikes(documents, rngs[1])}
    rows = {task: list(islice(_distinct(drawn), number)) for task, drawn in asked.items()}
    found = [_question(task, split, drawn) for task, drawn in rows.items() if len(drawn) >= MIN_PAIRS]
    if not found:
        raise UserError(
            f"expected held-out documents with {MIN_PAIRS} neighbouring sentences of {NUM_WORDS[0]} words or more for "
            "the yardstick, found fewer; hold out more documents, such as with --held-out 0.1"
        )
    return Yardstick(YARDSTICK, split, found)


def _question(task: str, split: str, rows: Sequence[Row]) -> Question:
    anchors, related, unrelated = (list(column) for column in zip(*rows, strict=True))
    labels = np.repeat([1.0, 0.0], len(rows))
    return Question(task, split, [*anchors, *anchors], [*related, *unrelated], labels)


def _passages(documents: Documents, rng: np.random.Generator) -> Iterator[Row]:
    for document, place in _anchors(documents, rng):
        sentences = documents[document]
        far = [sentence for sentence in sentences[place + FAR :] if _is_ordinary(sentence)]
        if far and _is_ordinary(sentences[place + 1]):
            yield sentences[place], sentences[place + 1], _one_of(far, rng)


def _lookalikes(documents: Documents, rng: np.random.Generator) -> Iterator[Row]:
    others = _most_similar(documents)
    for document, place in _anchors(documents, rng):
        sentences = documents[document]
        near = [sentence for sentence in sentences[place + 2 : place + MAX_DISTANCE + 1] if _is_ordinary(sentence)]
        alike = [sentence for sentence in documents[others[document]] if _is_ordinary(sentence)]
        if near and alike:
            yield sentences[place], _one_of(near, rng), _one_of(alike, rng)


def _anchors(documents: Documents, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Return the places of all ordinary sentences that another follows, in random order."""
    places = [
        (number, place)
        for number, sentences in enumerate(documents)
        for place, sentence in enumerate(sentences[:-1])
        if _is_ordinary(sentence)
    ]
    return [places[order] for order in rng.permutation(len(places))]


def _most_similar(documents: Documents) -> list[int]:
    """Return for each document the number of the other one that shares most words with it."""
    counts = TfidfCosine.from_sentences(sentence for sentences in documents for sentence in sentences)
    vectors = counts.vectors([" ".join(sentences[:COMPARED_SENTENCES]) for sentences in documents])
    nearest = []
    for number in range(len(documents)):
        cosines = (vectors[[number]] @ vectors.T).toarray()[0]
        cosines[number] = -1
        nearest.append(int(np.argmax(cosines)))
    return nearest


def _one_of(sentences: Sequence[str], rng: np.random.Generator) -> str:
    return sentences[int(rng.integers(len(sentences)))]


@lru_cache(1 << 16)
def _is_ordinary(sentence: str) -> bool:
    return NUM_WORDS[0] <= len(words(sentence)) <= NUM_WORDS[1]


def _distinct(rows: Iterator[Row]) -> Iterator[Row]:
    """Leave out rows in which a sentence stands twice, and anchors that were asked about before."""
    asked = set()
    for row in rows:
        if len(set(row)) == len(row) and row[0] not in asked:
            asked.add(row[0])
            yield row
