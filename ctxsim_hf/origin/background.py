"""Choose the background of an origin: sentences of its corpus that scores are compared with.

They are those with the lowest hashes, so that the background of a corpus that grew is that of a corpus of this size,
and most of it stays when documents are added.
"""

import numpy as np

from ctxsim_hf.origin.context_index import IndexSentences, Rows
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.word_ngrams import mix

BACKGROUND_TOKENS = (5, 40)  # without fragments and overlong sentences


def choose_background(sentences: IndexSentences, keys: Rows, size: int, seed: int) -> list[str]:
    """Return sentences of ordinary length in a random order; of repeated ones the first.

    Args:
        sentences (`IndexSentences`): All sentences.
        keys (`Rows`): The hash of each.
        size (`int`): Number of sentences to choose.
        seed (`int`): Another seed gives another order.
    """
    low, high = BACKGROUND_TOKENS
    lengths = sentences.chunks.lengths
    ordinary = np.flatnonzero((lengths >= low) & (lengths <= high))
    if len(ordinary) == 0:
        raise UserError(f"no sentence has {low} to {high} tokens, so there is no background; add documents")
    hashes = mix(np.asarray(keys)[ordinary], np.array([seed], np.uint64))
    return sentences.texts(ordinary[_lowest(hashes, size)])


def _lowest(hashes: np.ndarray, size: int) -> np.ndarray:
    """Return the places of the lowest different hashes, ascending; of equal ones the first place."""
    number = 2 * size
    while number < len(hashes):  # so that few are sorted
        limit = np.partition(hashes, number)[number]
        few = np.flatnonzero(hashes < limit)
        _, firsts = np.unique(hashes[few], return_index=True)
        if len(firsts) >= size:
            return few[firsts[:size]]
        number *= 2
    _, firsts = np.unique(hashes, return_index=True)
    return firsts[:size]
