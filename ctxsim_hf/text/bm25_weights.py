"""The weights of BM25, the score search engines give: the sum over the words of a query of

idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / mean length))
"""

import numpy as np

K1, B = 1.5, 0.75


def saturated(tf: np.ndarray, lengths: np.ndarray, mean_length: float) -> np.ndarray:
    """Return the weight of words that stand `tf` times in documents of these lengths, without idf."""
    weights: np.ndarray = tf * (K1 + 1) / (tf + K1 * (1 - B + B * lengths / mean_length))
    return weights


def bm25_idf(num_documents: int, df: np.ndarray) -> np.ndarray:
    """Return ln(1 + (documents - df + 0.5) / (df + 0.5)), which is never below 0."""
    return np.log1p((num_documents - df + 0.5) / (df + 0.5))
