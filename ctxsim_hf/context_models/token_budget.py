"""Rows in some order -> batches that hold a limited number of tokens, padding included."""

from collections.abc import Iterator

import numpy as np

TOKENS_PER_BATCH = 4096


def padded_batches(order: np.ndarray, lengths: np.ndarray) -> Iterator[np.ndarray]:
    """Yield rows in this order, as many together as the token budget allows with padding, at least one.

    Args:
        order (`(rows,)`): Rows; those of like length should follow each other.
        lengths: Tokens of every row, by its number.
    """
    start = 0
    longest = 0
    for place, row in enumerate(order):
        longest = max(longest, int(lengths[row]))
        if place > start and longest * (place + 1 - start) > TOKENS_PER_BATCH:
            yield order[start:place]
            start, longest = place, int(lengths[row])
    if len(order):
        yield order[start:]
