"""Words -> their letter n-grams."""

from collections import Counter
from collections.abc import Mapping

SIZES = (2, 3, 4)
BOUNDARY = " "  # on either side of a word


def letter_ngrams(text: str) -> set[str]:
    """Return the letter n-grams of a word with its boundaries, or of a part of one. A shorter text counts as one."""
    return {text[place : place + size] for size in SIZES for place in range(max(1, len(text) - size + 1))}


def count_ngrams(words: Mapping[str, int]) -> Counter[str]:
    """Return how often each n-gram occurs, from how often each word does."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for ngram in letter_ngrams(f"{BOUNDARY}{word}{BOUNDARY}"):
            counts[ngram] += count
    return counts
