"""Unit vectors -> communities: groups of sentences that are all similar to one of them, its centre.

These are the communities of `community_detection` of sentence-transformers: the sentence with the most neighbours and
its neighbours are the first, and so on among the sentences that are in none yet. Here a first pass only counts
neighbours, and a second finds those of the sentences that may still become centres, so that memory holds a number for
each sentence and one block of cosines, not all neighbours of all sentences.
"""

from dataclasses import dataclass

import numpy as np
from tqdm import tqdm

from ctxsim_hf.mining.pair_mining import COLUMNS, ROWS, blocks_above_diagonal

CENTRES = 64  # whose neighbours are found at a time


@dataclass(frozen=True)
class Community:
    """Places of the sentences of a community."""

    members: np.ndarray  # the centre first, then the most similar to it
    similarities: np.ndarray  # of each member to the centre
    typical: int  # the place of the member that is nearest to the mean of all


def find_communities(vectors: np.ndarray, threshold: float, min_size: int) -> list[Community]:
    """Return communities of at least `min_size` sentences, the largest first. A sentence is in one at most.

    Args:
        vectors (`np.ndarray`): Vectors of length 1, (sentences, vector size), float32.
        threshold (`float`): The lowest cosine of a member with the centre.
        min_size (`int`): The lowest number of members, the centre included.
    """
    counts = count_neighbours(vectors, threshold)
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] >= min_size]
    taken = np.zeros(len(vectors), bool)
    found: list[Community] = []
    with tqdm(total=len(order), desc="communities", unit="sentence", disable=None) as bar:
        while len(order):
            centres, order = order[:CENTRES], order[CENTRES:]
            for centre, (places, similarities) in zip(
                centres.tolist(), _neighbours(vectors, centres, threshold), strict=True
            ):
                free = ~taken[places]
                if taken[centre] or free.sum() < min_size:
                    continue
                members = places[free]
                taken[members] = True
                found.append(_community(vectors, centre, members, similarities[free]))
            left = order[~taken[order]]
            bar.update(len(centres) + len(order) - len(left))
            order = left
    return sorted(found, key=lambda community: len(community.members), reverse=True)


def count_neighbours(vectors: np.ndarray, threshold: float) -> np.ndarray:
    """Return how many sentences reach the threshold with each, itself included: (sentences,)."""
    counts = np.zeros(len(vectors), np.int64)
    for row, column, cosines in blocks_above_diagonal(vectors):
        near = cosines >= threshold
        rows, columns = near.shape
        if row + rows > column:  # leave out what is below the diagonal, and the diagonal itself
            near &= np.arange(row, row + rows)[:, None] < np.arange(column, column + columns)
        counts[row : row + rows] += near.sum(1)
        counts[column : column + columns] += near.sum(0)
    return counts + 1


def _neighbours(vectors: np.ndarray, centres: np.ndarray, threshold: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the places and cosines of the neighbours of each centre."""
    queries = np.ascontiguousarray(vectors[centres], dtype=np.float32)
    parts: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in centres]
    for start in range(0, len(vectors), COLUMNS):
        cosines = queries @ np.asarray(vectors[start : start + COLUMNS], dtype=np.float32).T
        for row, near in enumerate(cosines >= threshold):
            places = np.flatnonzero(near)
            parts[row].append((places + start, cosines[row, places]))
    joined = []
    for centre, part in zip(centres.tolist(), parts, strict=True):
        places, similarities = (np.concatenate(arrays) for arrays in zip(*part, strict=True))
        others = places != centre
        joined.append((np.append(centre, places[others]), np.append(np.float32(1), similarities[others])))
    return joined


def _community(vectors: np.ndarray, centre: int, members: np.ndarray, similarities: np.ndarray) -> Community:
    order = np.lexsort((members, -similarities, members != centre))
    members, similarities = members[order], similarities[order]
    parts = range(0, len(members), ROWS)
    mean = np.sum([vectors[members[part : part + ROWS]].sum(0, dtype=np.float64) for part in parts], axis=0)
    to_mean = np.concatenate([vectors[members[part : part + ROWS]] @ mean for part in parts])
    return Community(members, similarities, int(members[np.argmax(to_mean)]))
