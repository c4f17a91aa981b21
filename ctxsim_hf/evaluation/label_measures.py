"""Scores of a system and labels 0 or 1 of people for the same pairs -> average precision and AUC, with intervals.

Both are read off a table that counts, for each distinct score, the pairs of either label. Pairs of equal score are
accepted together: average precision is scikit-learn's, and AUC gives half a point for a tie, as mean ranks do.
"""

from collections.abc import Callable

import numpy as np

from ctxsim_hf.runtime.correlation import check_scores
from ctxsim_hf.runtime.estimates import Estimate, bootstrap, undefined

# Counts of pairs with label 1 and with label 0 by score, each (rows, distinct scores, the highest first) -> (rows,)
LabelMeasure = Callable[[np.ndarray, np.ndarray], np.ndarray]


def average_precision(positives: np.ndarray, negatives: np.ndarray) -> np.ndarray:
    """Return the mean precision at the pairs with label 1; nan for a row without any."""
    found, accepted = np.cumsum(positives, axis=1), np.cumsum(positives + negatives, axis=1)
    precision = found / np.maximum(accepted, 1)
    return _divide((positives * precision).sum(axis=1), found[:, -1])


def auc(positives: np.ndarray, negatives: np.ndarray) -> np.ndarray:
    """Return how often a pair with label 1 scores higher than one with label 0; nan for a row of one label."""
    above = np.cumsum(negatives, axis=1) - negatives / 2  # of label 0, with half of those that tie
    all_positives, all_negatives = positives.sum(axis=1), negatives.sum(axis=1)
    pairs = all_positives * all_negatives
    return _divide(pairs - (positives * above).sum(axis=1), pairs)


def measure_labels(measure: LabelMeasure, scores: np.ndarray, labels: np.ndarray) -> Estimate:
    """Return how well a system's scores tell the labels of people apart.

    Args:
        measure: `average_precision` or `auc`.
        scores (`np.ndarray`): One a pair.
        labels (`np.ndarray`): 0 or 1 for each pair.
    """
    scores = check_scores(scores, len(labels))
    if len(np.unique(labels)) < 2:
        return undefined(f"all {len(labels)} pairs have one label")
    _, codes = np.unique(-scores, return_inverse=True)  # 0 for the highest score
    size = int(codes.max()) + 1

    def figure(draw: np.ndarray) -> np.ndarray:
        places = codes[draw] + np.arange(len(draw))[:, None] * size  # in a table of counts, a row for each row
        chosen = labels[draw] == 1
        counts = [np.bincount(places[which], minlength=len(draw) * size) for which in (chosen, ~chosen)]
        positives, negatives = (count.reshape(len(draw), size) for count in counts)
        return measure(positives, negatives)

    return bootstrap(figure, len(labels))


def _divide(total: np.ndarray, by: np.ndarray) -> np.ndarray:
    return np.divide(total, by, out=np.full(len(by), np.nan), where=by > 0)
