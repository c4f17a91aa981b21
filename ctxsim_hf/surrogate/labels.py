"""Map labels to the cosines to train for and back, and weigh labels by their spread."""

from dataclasses import dataclass

import numpy as np

from ctxsim_hf.runtime.errors import UserError

LABEL_KINDS = ("as-is", "stretched", "start")
TAIL = 0.001  # share of labels at either end that are cut to -1 and 1
MAX_WEIGHT = 10.0  # relative to a label of median spread; the lowest weight is 1 / 10


@dataclass(frozen=True)
class LabelMap:
    """An affine map from [low, high] to [-1, 1]; labels beyond are cut."""

    low: float = -1.0
    high: float = 1.0

    @classmethod
    def matching(cls, labels: np.ndarray, cosines: np.ndarray) -> "LabelMap":
        """Return the map that gives labels the mean and standard deviation of a model's cosines of the same pairs."""
        deviation = float(cosines.std())
        if not deviation > 0 or not labels.std() > 0:
            raise UserError("--labels start needs pairs of different scores, and a start that tells them apart")
        scale, middle = float(labels.std()) / deviation, float(cosines.mean())
        low, high = (float(labels.mean()) + (end - middle) * scale for end in (-1, 1))
        return cls(low, high)

    @classmethod
    def fit(cls, kind: str, labels: np.ndarray) -> "LabelMap":
        """Return the map for these labels: as-is, or stretched."""
        if kind == "as-is":
            _check_range(labels)
            return cls()
        if not np.isfinite(labels).all():
            raise UserError(f"expected scores that are numbers, but {(~np.isfinite(labels)).sum()} are not")
        low, high = (float(value) for value in np.quantile(labels, [TAIL, 1 - TAIL]))
        if low == high:
            raise UserError(f"--labels stretched needs different scores, but nearly all {len(labels)} are {low:g}")
        return cls(low, high)

    def target(self, labels: np.ndarray) -> np.ndarray:
        """Return the cosines to train for."""
        return np.clip((labels - self.low) / (self.high - self.low) * 2 - 1, -1, 1).astype(np.float32)

    def label(self, targets: np.ndarray) -> np.ndarray:
        """Return cosines on the scale of the labels."""
        return self.low + (targets + 1) / 2 * (self.high - self.low)


def _check_range(labels: np.ndarray) -> None:
    outside = np.flatnonzero(~((labels >= -1) & (labels <= 1)))
    if outside.size:
        raise UserError(
            f"expected scores from -1 to 1, which a cosine can reach, but {outside.size} of {len(labels)} are not, "
            f"the first is {labels[outside[0]]:g}; map them with --labels stretched"
        )


def spread_weights(spreads: np.ndarray) -> np.ndarray:
    """Return 1 / spread^2, from 0.1 to 10 times the weight of the median spread, with mean 1.

    A label of unknown spread has the lowest weight.
    """
    known = spreads[np.isfinite(spreads)]
    if not known.size:
        raise UserError("--weight-by-spread needs a column 'spread' in the pairs, as `ctxsim harvest` writes it")
    filled = np.maximum(np.where(np.isfinite(spreads), spreads, np.inf), 1e-9)
    weights = np.clip((np.median(known) / filled) ** 2, 1 / MAX_WEIGHT, MAX_WEIGHT)
    return (weights / weights.mean()).astype(np.float32)
