"""Sentence pairs -> TF-IDF cosine over letter n-grams, for which the forms of a word are nearly the same word.

A word is a unit vector over its letter n-grams, which include its two boundaries, so that *plays* and *played* are
similar, as are the forms of words in any inflected language. An n-gram weighs its idf, since those that most words
have would make any two long texts alike. A text is the sum of its words; one that stands in it n times weighs
idf^p * n^q. In a sentence all words matter, and what is repeated is mostly a function word: p is 0.75, q is 0. In a
long text frequent words are noise, and what is repeated is what it is about: both grow towards 1.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array, diags_array

from ctxsim_hf.text.bags import bag_matrix, count_matrix, unit_rows
from ctxsim_hf.text.letter_ngrams import BOUNDARY, letter_ngrams
from ctxsim_hf.text.lexical import TfidfCosine
from ctxsim_hf.text.sentence_checks import check_pairs
from ctxsim_hf.text.words import words

PAIRS_PER_BLOCK = 2000  # pairs whose vectors are in memory at a time
MIN_NGRAM_IDF = 0.05  # so that a word of which nothing is rare still has a vector
SHORT_TEXT = 20  # words
SHORT_POWER = 0.75


def letter_vectors(texts: Sequence[str], counts: TfidfCosine) -> csr_array:
    """Return unit vectors of words with their ends: (texts, n-grams of all). The counts say how rare an n-gram is."""
    held, ngrams = bag_matrix([letter_ngrams(text) for text in texts])
    idf = np.log(counts.num_sentences / counts.ngrams(ngrams).clip(min=1)).clip(min=MIN_NGRAM_IDF)
    return unit_rows(csr_array(held @ diags_array(idf)))


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
        held, vocabulary = count_matrix([Counter(words(sentence)) for sentence in sentences])
        letters = letter_vectors([f"{BOUNDARY}{word}{BOUNDARY}" for word in vocabulary], self.counts)
        lengths = np.diff(held.indptr)
        shortness = np.repeat(SHORT_TEXT / np.maximum(lengths, SHORT_TEXT), lengths)
        idf = self.counts.idf(vocabulary)[held.indices]
        held.data = idf ** (1 - (1 - SHORT_POWER) * shortness) * held.data ** (1 - shortness)
        vectors = csr_array(held @ letters)
        vectors.sort_indices()
        return unit_rows(vectors)
