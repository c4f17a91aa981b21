"""Turn the scores of two sentences in the same contexts into one similarity.

Each comparison turns score vectors into vectors whose cosine is the similarity. S is a sum of log-probabilities, all
negative, so the cosine of the raw scores (Eq. 4) is always close to 1; the others measure how much better a sentence
fits than a fixed background of corpus sentences does in the same contexts.

| comparison | vector |
|---|---|
| `cosine` | the scores |
| `centered` | the scores minus the background's mean in each context |
| `zscore` | the same, divided by the background's standard deviation in each context |
| `whitened` | the same, decorrelated: contexts of one sentence are alike, so their scores repeat each other |
"""

from functools import lru_cache

import numpy as np

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.threads import no_spinning

COMPARISONS = ("cosine", "centered", "zscore", "whitened")
RIDGE = 0.03  # added to the eigenvalues of the background's correlation matrix, so that noise is not amplified
RESAMPLES = 200


def comparable(compare_by: str, scores: np.ndarray, background: np.ndarray, ridge: float = RIDGE) -> np.ndarray:
    """Return vectors to compare by cosine, of the shape of the scores: (sentences, contexts).

    Args:
        compare_by (`str`): One of `COMPARISONS`.
        scores (`np.ndarray`): S of the sentences.
        background (`np.ndarray`): S of the background sentences in the same contexts, (background, contexts); `cosine`
            ignores it.
        ridge (`float`): Regularisation of `whitened`.
    """
    check_comparison(compare_by)
    if compare_by == "cosine":
        return scores
    if not len(background):
        raise UserError(f"{compare_by!r} needs background sentences, got none")
    centered = scores - background.mean(0)
    if compare_by == "centered":
        return centered
    std = background.std(0)
    # A context in which all background sentences score alike tells nothing.
    scale = np.divide(1, std, out=np.zeros_like(std), where=std > 0)
    if compare_by == "zscore":
        return centered * scale
    return whiten(centered * scale, (background - background.mean(0)) * scale, ridge)


def check_comparison(name: str) -> None:
    """Refuse a name that is not one of `COMPARISONS`."""
    if name not in COMPARISONS:
        raise UserError(f"unknown comparison {name!r}; expected one of {', '.join(COMPARISONS)}")


@no_spinning()
def whiten(vectors: np.ndarray, background: np.ndarray, ridge: float) -> np.ndarray:
    """Multiply vectors by (R + ridge)^(-1/2), where R is the correlation matrix of the standardised background.

    The symmetric root keeps a dimension for each context. It is taken on the smaller side: of the contexts if they are
    fewer than the background sentences, else from B B' / n, which has the same eigenvalues as R = B' B / n.
    """
    number, contexts = background.shape
    if contexts <= number:
        values, directions = np.linalg.eigh(background.T @ background / number)
        return vectors @ directions * (values + ridge) ** -0.5 @ directions.T
    values, directions = np.linalg.eigh(background @ background.T / number)
    values = np.maximum(values, 0)
    # (R + ridge)^(-1/2) = ridge^(-1/2) I + B' U diag(change) U' B, where the change goes to a limit at value 0
    flat = ridge**-0.5
    change = np.full_like(values, -0.5 * ridge**-1.5)
    np.divide((values + ridge) ** -0.5 - flat, values, out=change, where=values > 1e-9 * ridge)
    along = vectors @ background.T @ directions
    return flat * vectors + along * (change / number) @ directions.T @ background


def cosine(vector1: np.ndarray, vector2: np.ndarray) -> float:
    """Return the cosine of two vectors (Eq. 4); 0 where one of them is zero."""
    return float(_ratios(vector1 @ vector2, np.sqrt((vector1 @ vector1) * (vector2 @ vector2))))


def context_spread(vector1: np.ndarray, vector2: np.ndarray, seed: int = 0) -> float:
    """Return the standard deviation of the cosine over contexts drawn with replacement."""
    _, spreads = cosines_and_spreads(np.stack([vector1, vector2]), np.array([[0, 1]]), seed)
    return float(spreads[0])


def cosines_and_spreads(vectors: np.ndarray, pairs: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return cosines and spreads, (pairs,) each, of pairs of vectors (vectors, contexts), given by their places."""
    if not vectors.shape[1]:
        return np.zeros(len(pairs)), np.full(len(pairs), np.nan)
    first, second = pairs.T
    counts = _context_counts(vectors.shape[1], seed)
    products = counts @ (vectors[first] * vectors[second]).T  # (1 + resamples, pairs)
    squares = counts @ (vectors * vectors).T  # (1 + resamples, vectors)
    cosines = _ratios(products, np.sqrt(squares[:, first] * squares[:, second]))
    return cosines[0], cosines[1:].std(0)


def _ratios(products: np.ndarray, norms: np.ndarray) -> np.ndarray:
    return np.clip(np.divide(products, norms, out=np.zeros_like(products), where=norms > 0), -1, 1)


@lru_cache(maxsize=64)
def _context_counts(number: int, seed: int) -> np.ndarray:
    """Return how often each context counts: once in the first row, then as drawn with replacement."""
    drawn = np.random.default_rng(seed).multinomial(number, np.full(number, 1 / number), size=RESAMPLES)
    return np.concatenate([np.ones((1, number)), drawn])
