"""Pairs and what several signals say of them -> the pairs whose labels would teach most.

Where signals agree, a label would only confirm them. Where they disagree about the order of pairs, or where the
similarity depends on which contexts happen to be drawn, a label decides. Signals are compared by their ranks, since
their scales differ.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class JudgedPairs:
    """Candidates, and what signals say of them."""

    members: np.ndarray  # (pairs, 2): numbers of sentences
    similarities: np.ndarray  # (pairs,)
    spreads: np.ndarray  # (pairs,)
    signals: dict[str, np.ndarray]  # (pairs,) each

    @property
    def disagreements(self) -> np.ndarray:
        """How far apart the ranks of each pair by the signals are, from 0 to 1."""
        ranks = np.stack([_ranks(values) for values in self.signals.values()])
        return np.asarray(ranks.max(0) - ranks.min(0))


def choose_pairs(judged: JudgedPairs, number: int) -> np.ndarray:
    """Return the places of the pairs that would teach most, best first, no sentence in two of them."""
    gains = judged.disagreements
    if judged.spreads.any():
        gains = gains + _ranks(judged.spreads)
    chosen: list[int] = []
    used: set[int] = set()
    for place in np.argsort(-gains, kind="stable").tolist():
        members = set(judged.members[place].tolist())
        if len(chosen) < number and not members & used:
            chosen.append(place)
            used |= members
    return np.array(chosen, dtype=np.int64)


def _ranks(values: np.ndarray) -> np.ndarray:
    """Return the share of other values below each, where equal values are half below each other: from 0 to 1."""
    ordered = np.sort(values)
    below, up_to = np.searchsorted(ordered, values, "left"), np.searchsorted(ordered, values, "right")
    return np.asarray((below + up_to - 1) / 2 / max(1, len(values) - 1))
