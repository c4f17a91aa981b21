"""Turn cosines of pairs and their target scores into a loss, and into figures.

`l2` is the paper's. `cosent` trains for the order of the scores and `pearson` for their proportions, so neither
depends on the range of the scores.
"""

from collections.abc import Callable

import numpy as np
import torch
from scipy.stats import pearsonr, spearmanr
from torch.nn import functional

from ctxsim_hf.surrogate.labels import LabelMap

COSENT_SCALE = 20.0  # the authors' value
COSENT_PAIRS = 512  # compared with each other, at quadratic cost
DENSE = 32  # dot products that cost as much as gathering two vectors


def l2_loss(similarity: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor | None = None) -> torch.Tensor:
    """Return the mean squared error; None as weights weighs all pairs alike."""
    squares = (similarity - targets) ** 2
    return squares.mean() if weights is None else (squares * weights).mean()


def cosent_loss(similarity: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return log(1 + sum of exp(20 (cos_j - cos_i)) over all i, j where i should be above j), averaged over blocks."""
    losses = []
    for cosines, wanted in zip(similarity.split(COSENT_PAIRS), targets.split(COSENT_PAIRS), strict=True):
        differences = COSENT_SCALE * (cosines[None, :] - cosines[:, None])
        wrong = differences.masked_fill(wanted[:, None] <= wanted[None, :], -torch.inf)
        losses.append(torch.logsumexp(functional.pad(wrong.flatten(), (1, 0)), 0))  # the 0 in front is log 1
    return torch.stack(losses).mean()


def pearson_loss(similarity: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return 1 - the correlation within the batch."""
    cosines, wanted = similarity - similarity.mean(), targets - targets.mean()
    return 1 - (cosines * wanted).sum() / (cosines.norm() * wanted.norm()).clamp(min=1e-8)


LOSSES: dict[str, Callable[..., torch.Tensor]] = {"l2": l2_loss, "cosent": cosent_loss, "pearson": pearson_loss}


def cosines(vectors: torch.Tensor, members: torch.Tensor) -> torch.Tensor:
    """Return the cosine of each pair of vectors.

    Where pairs share many vectors, all are multiplied with all, whose gradient is far cheaper.
    """
    directions = functional.normalize(vectors)
    first, second = members[:, 0], members[:, 1]
    if len(vectors) ** 2 <= DENSE * len(members):
        return (directions @ directions.T)[first, second]
    return (directions[first] * directions[second]).sum(1)


def agreement(similarity: np.ndarray, labels: np.ndarray, label_map: LabelMap) -> dict[str, float]:
    """Return the mean squared error on the scale of the labels, and the correlations."""
    return {
        "l2": float(((label_map.label(similarity) - labels) ** 2).mean()),
        "spearman": float(spearmanr(similarity, labels).statistic),
        "pearson": float(pearsonr(similarity, labels).statistic),
    }
