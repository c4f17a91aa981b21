"""Sentences -> 64-bit keys of their words and word bigrams, the terms of the TF-IDF index.

The key of a word is its xxh3 hash; the key of a bigram mixes those of its two words. Two different terms share a key
with probability 2**-64. Among the 25 million terms of a million chunks, the probability of even one collision is 2e-5,
so collisions are ignored and no vocabulary is kept.
"""

from collections.abc import Sequence
from itertools import chain

import numpy as np
import xxhash

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.words import words

NGRAMS = ("uni+bigrams", "bigrams", "words")


class NgramKeys:
    """Computes the keys of sentences, with a cache of word keys.

    Args:
        ngrams (`str`): `uni+bigrams`, `bigrams` or `words`.
        max_cached_words (`int`): The cache is cleared when it holds more words, which bounds memory.
    """

    def __init__(self, ngrams: str, max_cached_words: int = 1 << 20) -> None:
        if ngrams not in NGRAMS:
            raise UserError(f"ngrams must be one of {', '.join(NGRAMS)}, got {ngrams!r}")
        self.unigrams, self.bigrams = ngrams != "bigrams", ngrams != "words"
        self._max_cached_words = max_cached_words
        self._word_keys = _WordKeys()

    def __call__(self, sentences: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the key of every n-gram and the number of its sentence, in order. No bigram spans two sentences."""
        if len(self._word_keys) > self._max_cached_words:
            self._word_keys.clear()
        split = [words(sentence) for sentence in sentences]
        lengths = np.fromiter(map(len, split), np.int64, len(split))
        sentence_of = np.repeat(np.arange(len(split)), lengths)
        keys = np.fromiter(map(self._word_keys.__getitem__, chain.from_iterable(split)), np.uint64, len(sentence_of))
        # (words, 2): the word, and the bigram of the previous word and it
        terms = np.stack([keys, mix(np.roll(keys, 1), keys)], axis=1)
        follows = (np.diff(sentence_of, prepend=-1) == 0) & self.bigrams
        wanted = np.stack([np.full(len(keys), self.unigrams), follows], axis=1)
        return terms[wanted], np.repeat(sentence_of, wanted.sum(axis=1))


class _WordKeys(dict[str, int]):
    def __missing__(self, word: str) -> int:
        key = self[word] = xxhash.xxh3_64_intdigest(word.encode())
        return key


def mix(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the keys of bigrams. Word order matters, and every bit affects every bit of the key, as in SplitMix64."""
    mixed = first * np.uint64(0x9E3779B97F4A7C15) + second
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))
