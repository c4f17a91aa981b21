"""Vectors of a corpus -> the cosine that two unrelated sentences hardly ever reach, without labels.

Two sentences drawn at random are unrelated. Among n sentences each meets n others, so a threshold for a large corpus
must lie higher than one for a small corpus: beyond the percentiles that a sample of pairs can show, the tail is taken
to fall off exponentially, as it does between two high percentiles of the sample.
"""

from dataclasses import dataclass

import numpy as np

SAMPLE = 3000  # sentences, every two of which are a pair
TAILS = (1e-3, 1e-4)  # shares of pairs above the two percentiles
MAX_THRESHOLD = 0.95  # in a corpus with many copies the tail is theirs, and would lead beyond 1


@dataclass(frozen=True)
class UnrelatedPairs:
    """Cosines of pairs of random sentences, in ascending order."""

    cosines: np.ndarray

    @classmethod
    def sample(cls, vectors: np.ndarray, seed: int = 0) -> "UnrelatedPairs":
        """Compare random sentences with each other."""
        drawn = np.random.default_rng(seed).permutation(len(vectors))[:SAMPLE]
        some = np.asarray(vectors[np.sort(drawn)], dtype=np.float32)
        return cls(np.sort((some @ some.T)[np.triu_indices(len(some), 1)]))

    def threshold(self, percentile: float) -> float:
        """Return the cosine below which so many percent of unrelated pairs lie, at most 0.95."""
        tail = 1 - percentile / 100
        if not len(self.cosines):
            return MAX_THRESHOLD
        if tail >= TAILS[1] or len(self.cosines) * TAILS[1] < 1:
            return min(MAX_THRESHOLD, float(np.quantile(self.cosines, 1 - tail)))
        high, higher = np.quantile(self.cosines, [1 - TAILS[0], 1 - TAILS[1]])
        slope = (higher - high) / np.log(TAILS[0] / TAILS[1])
        return float(min(MAX_THRESHOLD, higher + slope * np.log(TAILS[1] / tail)))


def rare_percentile(num_sentences: int, neighbours: float) -> float:
    """Return the percentile above which a sentence has so many unrelated neighbours on average."""
    return 100 * (1 - min(1.0, neighbours / max(1, num_sentences)))
