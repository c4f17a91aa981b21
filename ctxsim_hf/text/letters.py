"""Sentence pairs -> TF-IDF cosine over letter n-grams, for which the forms of a word are nearly the same word.

A word is a unit vector over its letter n-grams, which include its two boundaries, so that *plays* and *played* are
similar, as are the forms of words in any inflected language. A sentence is the sum of its words, weighted by idf.
"""

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array, diags_array

from ctxsim_hf.text.bags import bag_matrix, unit_rows
from ctxsim_hf.text.lexical import TfidfCosine
from ctxsim_hf.text.sentence_checks import check_pairs
from ctxsim_hf.text.words import words

SIZES = (2, 3, 4)
BOUNDARY = " "  # on either side of a word
PAIRS_PER_BLOCK = 2000  # pairs whose vectors are in memory at a time


def letter_ngrams(text: str) -> set[str]:
    """Return the letter n-grams of a word with its boundaries, or of a part of one. A shorter text counts as one."""
    return {text[place : place + size] for size in SIZES for place in range(max(1, len(text) - size + 1))}


def letter_vectors(texts: Sequence[str]) -> csr_array:
    """Unit vectors of words with their ends, or of parts of them: (texts, n-grams of all)."""
    held, _ = bag_matrix([letter_ngrams(text) for text in texts])
    return unit_rows(held)


class LetterCosine:
    """Cosine of sentences over the letter n-grams of their words.

    Args:
        counts (`TfidfCosine`): Word counts of a corpus.
    """

    def __init__(self, counts: TfidfCosine) -> None:
        self.counts = counts

    def similarity(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> np.ndarray:
        """Return the cosine of each pair, from 0 to 1. A sentence without words of positive weight has similarity 0
        with every sentence, including itself."""
        sentences1, sentences2 = check_pairs(sentences1, sentences2)
        blocks = range(0, len(sentences1), PAIRS_PER_BLOCK)
        parts = [
            self._block(*(side[start : start + PAIRS_PER_BLOCK] for side in (sentences1, sentences2)))
            for start in blocks
        ]
        return np.concatenate([np.zeros(0), *parts])

    def _block(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> np.ndarray:
        places = {sentence: place for place, sentence in enumerate(dict.fromkeys([*sentences1, *sentences2]))}
        vectors = self.vectors(list(places))
        first, second = ([places[sentence] for sentence in side] for side in (sentences1, sentences2))
        return np.asarray((vectors[first] * vectors[second]).sum(axis=1)).clip(max=1)

    def vectors(self, sentences: Sequence[str]) -> csr_array:
        """Return unit vectors, to be compared with others of the same call: (sentences, n-grams of all)."""
        held, vocabulary = bag_matrix([set(words(sentence)) for sentence in sentences])
        letters = letter_vectors([f"{BOUNDARY}{word}{BOUNDARY}" for word in vocabulary])
        vectors = held @ diags_array(self.counts.idf(vocabulary)) @ letters
        vectors.sort_indices()
        return unit_rows(vectors)
