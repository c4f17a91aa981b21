"""The protocol of signals, which measure how similar two sentences are."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np


class Signal(Protocol):
    """A measure of similarity. Higher means more similar, and equal sentences have similarity 1.

    An origin combines several signals, such as `contexts`, `words` and `encoder`, by their weights.
    """

    def similarity(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> np.ndarray:
        """Return the similarity of each pair, (pairs,)."""
        ...
