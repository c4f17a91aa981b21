"""What an origin says of a pair: each signal that counts, and their mean."""

from dataclasses import dataclass

from ctxsim_hf.origin.contexts_signal import ContextComparison
from ctxsim_hf.origin.signals import CONTEXTS, mix


@dataclass(frozen=True)
class PairScores:
    signals: dict[str, float]  # each signal that counts
    shares: dict[str, float]  # the factor of each in the mean
    contexts: ContextComparison | None  # where contexts count

    @property
    def similarity(self) -> float:
        return float(mix(self.signals, self.shares))

    @property
    def spread(self) -> float:
        """Standard deviation of the similarity over draws of contexts; the other signals stay as they are."""
        return self.shares[CONTEXTS] * self.contexts.spread if self.contexts else 0.0
