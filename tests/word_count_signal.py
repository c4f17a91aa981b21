"""A signal from outside the package: two sentences are alike if they have as many words. It needs no folder."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

NAME = "word_count"


class WordCount:
    def __init__(self, folder: Path) -> None:
        self.folder = folder  # signals/word_count of the origin, which need not exist

    def similarity(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> np.ndarray:
        first, second = (np.array([len(text.split()) for text in side]) for side in (sentences1, sentences2))
        return np.minimum(first, second) / np.maximum(np.maximum(first, second), 1)
