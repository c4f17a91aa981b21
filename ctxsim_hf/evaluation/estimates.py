"""A figure with its interval. An interval is a bootstrap's: the middle 95 % of the figures that examples drawn with
replacement give.

The draws depend on the seed and the number of examples alone, so two systems meet the same ones. So one can reckon
with estimates: the interval of a difference is paired, and a mean over tasks or seeds has an interval of its own.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

NUM_RESAMPLES = 1000
LEVEL = 0.95
_NUMBERS_AT_ONCE = 1_000_000  # examples x resamples in memory


@dataclass(frozen=True)
class Estimate:
    """A figure and what every resample gives for it; nan where `undefined` says why there is none."""

    value: float
    resampled: np.ndarray = field(repr=False, compare=False)  # (NUM_RESAMPLES,)
    undefined: str | None = None

    @property
    def low(self) -> float:
        return self._quantile((1 - LEVEL) / 2)

    @property
    def high(self) -> float:
        return self._quantile((1 + LEVEL) / 2)

    def __sub__(self, other: "Estimate") -> "Estimate":
        """How much higher this is; an interval without 0 tells the two apart."""
        reason = self.undefined or other.undefined
        return Estimate(self.value - other.value, self.resampled - other.resampled, reason)

    def _quantile(self, share: float) -> float:
        # With a handful of examples a resample may hold one over and over: it has no figure and is left out.
        return np.nan if self.undefined else float(np.nanquantile(self.resampled, share))


def undefined(reason: str) -> Estimate:
    return Estimate(np.nan, np.full(NUM_RESAMPLES, np.nan), reason)


def mean_estimate(estimates: Sequence[Estimate]) -> Estimate:
    """The mean of figures, such as those of several tasks or seeds."""
    reason = next((estimate.undefined for estimate in estimates if estimate.undefined), None)
    value = float(np.mean([estimate.value for estimate in estimates]))
    return Estimate(value, np.mean([estimate.resampled for estimate in estimates], axis=0), reason)


def bootstrap(figure: Callable[[np.ndarray], np.ndarray], num_examples: int, seed: int = 0) -> Estimate:
    """The figure of all examples, with an interval.

    Args:
        figure: Gives the figure of each row of a matrix of examples' numbers.
        num_examples (`int`): Above 0.
        seed (`int`): Of the draws.
    """
    value = float(figure(np.arange(num_examples)[None])[0])
    return Estimate(value, np.concatenate([figure(draw) for draw in _draws(num_examples, seed)]))


def _draws(num_examples: int, seed: int) -> Iterator[np.ndarray]:
    """(resamples, examples) of their numbers, in blocks that fit into memory."""
    generator = np.random.default_rng(seed)
    rows = max(1, _NUMBERS_AT_ONCE // num_examples)
    for start in range(0, NUM_RESAMPLES, rows):
        yield generator.integers(num_examples, size=(min(rows, NUM_RESAMPLES - start), num_examples))
