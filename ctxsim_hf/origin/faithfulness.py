"""Score vectors of a pair -> how much each context moves the similarity, and how well that predicts what happens when
the context is left out.

The effect of a context is the cosine with it minus the cosine without it. For `cosine`, `centered` and `zscore`, where
a context has a place of its own in the vectors, this is exact. Whitening mixes contexts, so there the effect holds for
a fixed whitening, and [`Faithfulness`] says how far that is from leaving contexts out and comparing anew.
"""

from dataclasses import dataclass

import numpy as np

from ctxsim_hf.origin.contexts_signal import ContextComparison

LEFT_OUT = 32  # contexts that are left out in turn, spread over all sizes of effects


@dataclass(frozen=True)
class Faithfulness:
    """How well the effects of contexts predict the change of the similarity when they are left out."""

    correlation: float  # of predicted and actual change; nan if no context changes anything
    max_error: float  # the largest difference
    contexts: int  # left out in turn

    def __str__(self) -> str:
        return (
            f"{self.contexts} contexts left out in turn: the stated effects and the actual changes correlate "
            f"{self.correlation:.2f}, and differ by {self.max_error:.4f} at most"
        )


def context_effects(vectors: np.ndarray) -> np.ndarray:
    """Return the cosine minus the cosine without each context: (contexts,)."""
    first, second = vectors
    products, squares1, squares2 = first * second, first**2, second**2
    product, norm1, norm2 = products.sum(), squares1.sum(), squares2.sum()
    return _cosines(product, norm1, norm2) - _cosines(product - products, norm1 - squares1, norm2 - squares2)


def _cosines(products: np.ndarray, norms1: np.ndarray, norms2: np.ndarray) -> np.ndarray:
    lengths = np.sqrt(np.maximum(norms1, 0) * np.maximum(norms2, 0))
    return np.divide(products, lengths, out=np.zeros_like(lengths), where=lengths > 1e-12)


def measure_faithfulness(comparison: ContextComparison) -> Faithfulness | None:
    """Leave contexts out in turn; None if there are fewer than three."""
    number = len(comparison.contexts)
    if number < 3:
        return None
    effects = context_effects(comparison.vectors)
    order = np.argsort(effects)
    chosen = order[np.unique(np.linspace(0, number - 1, min(LEFT_OUT, number)).round().astype(int))]
    actual = np.array([comparison.similarity - comparison.similarity_without(place) for place in chosen.tolist()])
    stated = effects[chosen]
    varies = stated.std() > 0 and actual.std() > 0
    correlation = float(np.corrcoef(stated, actual)[0, 1]) if varies else float("nan")
    return Faithfulness(correlation, float(np.abs(stated - actual).max()), len(chosen))
