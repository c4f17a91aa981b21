"""Which suggested words are shown: worked examples with a model whose scores are given."""

from collections.abc import Sequence

import numpy as np

from ctxsim_hf.origin.suggested_words import WordSuggestions
from ctxsim_hf.text.lexical import TfidfCosine


class ScoredWords:
    """Scores each word by how often a sentence holds it, letter case included."""

    words = ["Cat", "cat", "dog", "the", "rare"]

    def word_scores(self, sentences: Sequence[str]) -> np.ndarray:
        return np.array([[float(text.split().count(word)) for word in self.words] for text in sentences])


def suggestions(held: dict[str, int], sentences: int) -> WordSuggestions:
    counts = TfidfCosine.from_sentences(
        f"{' '.join(word for word, number in held.items() if place < number)} x{place}" for place in range(sentences)
    )
    background = ["Cat", "cat", "dog", "the", "rare", *["nothing"] * 20]
    return WordSuggestions(ScoredWords(), background, counts)


def test_a_word_of_both_is_not_a_word_of_one() -> None:
    """Both suggest `cat`, and the first alone its other form."""
    found = suggestions({"cat": 5, "dog": 5, "the": 5}, 40)("Cat cat dog", "cat")
    assert (found.both, found.first, found.second) == (["cat"], ["dog"], [])


def test_rare_and_common_words_are_not_shown() -> None:
    """A small corpus has words too: one in fifteen sentences is not common, whatever share of them that is."""
    found = suggestions({"cat": 15, "dog": 16, "rare": 2}, 40)("cat dog rare", "cat dog rare")
    assert found.both == ["cat"]


def test_fragments_of_words_in_a_large_corpus_are_not_shown() -> None:
    found = suggestions({"cat": 5, "rare": 3}, 200_000)("cat rare", "cat rare")
    assert found.both == ["cat"]
