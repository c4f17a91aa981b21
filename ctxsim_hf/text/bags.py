"""Bags of terms -> sparse matrices, whose products compare many texts at once."""

from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np
from scipy.sparse import csr_array, diags_array


def bag_matrix(bags: Sequence[Collection[str]]) -> tuple[csr_array, list[str]]:
    """Return ones where a bag holds a term, (bags, terms), and the terms; a bag has each of its terms once.

    All are in alphabetical order, so that no sum of them depends on the company or on the order of a set.
    """
    terms = sorted(set().union(*bags))
    places = {term: place for place, term in enumerate(terms)}
    columns = [places[term] for bag in bags for term in sorted(bag)]
    ends = np.cumsum([0, *map(len, bags)])
    return csr_array((np.ones(len(columns)), columns, ends), shape=(len(bags), len(terms))), terms


def count_matrix(bags: Sequence[Counter[str]]) -> tuple[csr_array, list[str]]:
    """Return how often each bag holds each term, (bags, terms), and the terms, in the same order."""
    held, terms = bag_matrix(bags)
    held.data[:] = [bag[term] for bag in bags for term in sorted(bag)]
    return held, terms


def unit_rows(vectors: csr_array) -> csr_array:
    """Return rows of length 1; zeros stay zeros."""
    lengths = np.sqrt((vectors * vectors).sum(axis=1))
    return csr_array(diags_array(np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)) @ vectors)
