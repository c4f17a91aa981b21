"""Estimate figures with bootstrap intervals: the middle 95 % of the figures of examples drawn with replacement.

The draws depend on the seed and the number of examples alone, so they are the same for all systems. Estimates can
therefore be subtracted, which gives a paired interval, and averaged over tasks or seeds.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

NUM_RESAMPLES = 1000
LEVEL = 0.95
_NUMBERS_AT_ONCE = 1_000_000  # examples x resamples in memory


@dataclass(frozen=True)
class Estimate:
    """A figure and its values on all resamples; nan where `undefined` says why there is none."""

    value: float
    resampled: np.ndarray = field(repr=False, compare=False)  # (NUM_RESAMPLES,)
    undefined: str | None = None

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return self._quantile((1 - LEVEL) / 2)

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self._quantile((1 + LEVEL) / 2)

    def __sub__(self, other: "Estimate") -> "Estimate":
        """Return the difference of two figures; it is significant if its interval excludes 0."""
        reason = self.undefined or other.undefined
        return Estimate(self.value - other.value, self.resampled - other.resampled, reason)

    def _quantile(self, share: float) -> float:
        # A resample of very few examples may be constant; it has no figure and is left out.
        return np.nan if self.undefined else float(np.nanquantile(self.resampled, share))


def undefined(reason: str) -> Estimate:
    """Return an estimate without a figure."""
    return Estimate(np.nan, np.full(NUM_RESAMPLES, np.nan), reason)


def mean_estimate(estimates: Sequence[Estimate]) -> Estimate:
    """Return the mean of figures, such as those of several tasks or seeds."""
    reason = next((estimate.undefined for estimate in estimates if estimate.undefined), None)
    value = float(np.mean([estimate.value for estimate in estimates]))
    return Estimate(value, np.mean([estimate.resampled for estimate in estimates], axis=0), reason)


def bootstrap(figure: Callable[[np.ndarray], np.ndarray], num_examples: int, seed: int = 0) -> Estimate:
    """Return the figure of all examples, with an interval.

    Args:
        figure: Maps a matrix of example numbers to the figure of each row.
        num_examples (`int`): Number of examples, at least 1.
        seed (`int`): Random seed of the draws.
    """
    value = float(figure(np.arange(num_examples)[None])[0])
    return Estimate(value, np.concatenate([figure(draw) for draw in _draws(num_examples, seed)]))


def _draws(num_examples: int, seed: int) -> Iterator[np.ndarray]:
    """Yield example numbers (resamples, examples) in blocks that fit into memory."""
    generator = np.random.default_rng(seed)
    rows = max(1, _NUMBERS_AT_ONCE // num_examples)
    for start in range(0, NUM_RESAMPLES, rows):
        yield generator.integers(num_examples, size=(min(rows, NUM_RESAMPLES - start), num_examples))
