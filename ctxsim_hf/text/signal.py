"""The door for signals: what says how alike two sentences are."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np


class Signal(Protocol):
    """An origin weighs signals such as `contexts`, `words` and `encoder`; a higher number means more alike, and 1 that
    two sentences are equal."""

    def similarity(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> np.ndarray:
        """Return how alike the sentences of each pair are, (pairs,)."""
        ...
