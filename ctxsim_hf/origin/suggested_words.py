"""Two sentences -> the words that both suggest to a language model, and those that one of them suggests.

A score is the log-probability of the word as a cloze context, in standard deviations above how the background suggests
it: so a word that any sentence suggests does not show. Only whole words that the corpus knows are shown. Of those that
one sentence suggests, only likely ones are: what is improbable after any sentence stands out from one by chance.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from ctxsim_hf.text.lexical import TfidfCosine

BACKGROUND = 200  # sentences
MIN_LETTERS = 3
MIN_SENTENCES = 3  # of the corpus that hold a word
MIN_SHARE = 2e-5  # of them, in a large corpus, where mistakes and fragments of words occur too
MAX_SHARE = 0.02  # of the corpus's sentences: more common words say little
NEVER_COMMON = 15  # sentences: a word in no more of them is shown in a small corpus too
SHOWN = 8
LIKELY = 500  # words that a sentence suggests most, of which those are shown that stand out
MIN_SCORE = 1.5  # standard deviations: what stands out less is not shown


@runtime_checkable
class WordModel(Protocol):
    """A context model that scores every one-word context."""

    @property
    def words(self) -> list[str]: ...

    def word_scores(self, sentences: Sequence[str]) -> np.ndarray:
        """Return log-probabilities, (sentences, words)."""
        ...


@dataclass(frozen=True)
class SuggestedWords:
    both: list[str]
    first: list[str]  # that the first sentence suggests and the second does not
    second: list[str]

    @property
    def groups(self) -> dict[str, list[str]]:
        """The words by who suggests them."""
        return {"both suggest": self.both, "only 1 suggests": self.first, "only 2 suggests": self.second}

    def __str__(self) -> str:
        return "\n".join(
            f"{name}: {', '.join(words) or 'no word of the corpus'}" for name, words in self.groups.items()
        )


class WordSuggestions:
    """
    Args:
        model (`WordModel`): Scores words.
        background (`Sequence[str]`): Sentences of the corpus.
        counts (`TfidfCosine`): Word counts of the corpus.
    """

    def __init__(self, model: WordModel, background: Sequence[str], counts: TfidfCosine) -> None:
        self.model, self.counts = model, counts
        self._background = background[:BACKGROUND]

    @cached_property
    def _known(self) -> np.ndarray:
        """Places of tokens that are words of the corpus."""
        words = self.model.words
        held = self.counts.document_frequency([word.lower() for word in words])
        rare, common = (share * self.counts.num_sentences for share in (MIN_SHARE, MAX_SHARE))
        known = (held >= max(rare, MIN_SENTENCES)) & (held <= max(common, NEVER_COMMON))
        fits = [word.isalpha() and len(word) >= MIN_LETTERS for word in words]
        return np.flatnonzero(np.array(fits) & known)

    @cached_property
    def _usual(self) -> tuple[np.ndarray, np.ndarray]:
        scores = self.model.word_scores(self._background)[:, self._known]
        return scores.mean(0), np.maximum(scores.std(0), 1e-3)

    def __call__(self, sentence1: str, sentence2: str) -> SuggestedWords:
        mean, deviation = self._usual
        found = self.model.word_scores([sentence1, sentence2])[:, self._known]
        suggested = (found - mean) / deviation
        both = self._best(np.minimum(*suggested))
        likely = found >= np.sort(found, axis=1)[:, -LIKELY:][:, :1]
        first, second = np.where(likely, suggested, -np.inf)
        only = (
            self._best(np.where(other < MIN_SCORE / 2, scores, -np.inf))
            for scores, other in ((first, second), (second, first))
        )
        # A word may be several tokens that differ in case, of which both sentences suggest one.
        return SuggestedWords(both, *([word for word in words if word not in both] for words in only))

    def _best(self, scores: np.ndarray) -> list[str]:
        """Return the words of the highest scores, forms that differ in case once."""
        shown: dict[str, None] = {}
        for place in np.argsort(-scores, kind="stable")[: 4 * SHOWN]:
            if scores[place] >= MIN_SCORE:
                shown.setdefault(self.model.words[self._known[place]].lower())
        return list(shown)[:SHOWN]
