"""Vectors of sentences, partly dense and partly sparse -> the nearest others of each."""

import numpy as np
from scipy.sparse import csr_array
from tqdm import tqdm

ROWS_PER_BLOCK = 500
PROJECTED = 256  # random directions that stand for the sparse part while candidates are searched
CANDIDATES = 4  # times the number of neighbours, to be compared exactly


def nearest(dense: np.ndarray, sparse: csr_array, number: int) -> np.ndarray:
    """Return the rows with the largest dot product with each row, the nearest first: (rows, number).

    Candidates are found with the sparse part projected on random directions, since the product of a large sparse
    matrix with itself is slow, and are then compared exactly; one neighbour in fifty may be missed.
    """
    number = min(number, len(dense) - 1)
    directions = np.random.default_rng(0).standard_normal((sparse.shape[1], PROJECTED), dtype=np.float32)
    searched = np.hstack([dense, sparse @ directions / np.float32(PROJECTED**0.5)])
    found = np.empty((len(dense), number), np.int32)
    for start in tqdm(range(0, len(dense), ROWS_PER_BLOCK), "neighbours", unit="block", disable=None, leave=False):
        rows = np.arange(start, min(start + ROWS_PER_BLOCK, len(dense)))
        products = searched[rows] @ searched.T
        products[np.arange(len(rows)), rows] = -np.inf
        kept = min(CANDIDATES * number, len(dense) - 1)
        candidates = np.sort(np.argpartition(-products, kept - 1, axis=1)[:, :kept], axis=1)
        exact = pair_products(dense, sparse, np.repeat(rows, kept), candidates.ravel()).reshape(candidates.shape)
        order = np.argsort(-exact, axis=1, kind="stable")[:, :number]
        found[rows] = np.take_along_axis(candidates, order, axis=1)
    return found


def pair_products(dense: np.ndarray, sparse: csr_array, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the dot product of each pair of rows."""
    products = np.einsum("ij,ij->i", dense[first], dense[second])
    return products + np.asarray((sparse[first] * sparse[second]).sum(axis=1)).ravel()
