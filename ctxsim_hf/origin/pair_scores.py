"""Hold the signals of a pair and their weighted mean."""

from dataclasses import dataclass

from ctxsim_hf.origin.contexts_signal import ContextComparison
from ctxsim_hf.origin.signals import CONTEXTS, mix


@dataclass(frozen=True)
class PairScores:
    """What an origin says of a pair."""

    signals: dict[str, float]  # the value of each signal that has a weight
    shares: dict[str, float]  # the share of each in the mean
    contexts: ContextComparison | None  # None if the signal `contexts` has no weight

    @property
    def similarity(self) -> float:
        """The weighted mean of the signals."""
        return float(mix(self.signals, self.shares))

    @property
    def spread(self) -> float:
        """Standard deviation of the similarity over draws of contexts, with the other signals held fixed."""
        return self.shares[CONTEXTS] * self.contexts.spread if self.contexts else 0.0
