"""A group of sentences -> the scores and spreads of its pairs, by the signals of an origin."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ctxsim_hf.origin.group_scoring import GROUP_SCORERS, Labels
from ctxsim_hf.origin.similarity import OriginSimilarity

Scorer = Callable[[OriginSimilarity, Sequence[str], np.ndarray], Labels]  # sentences, and pairs of places among them


def _label(origin: OriginSimilarity, sentences: Sequence[str], pairs: np.ndarray, mode: str) -> Labels:
    return origin.label(sentences, pairs, mode)


SCORERS: dict[str, Scorer] = {mode: partial(_label, mode=mode) for mode in GROUP_SCORERS}
