"""Mined pairs and communities against the whole matrix and against sentence-transformers, whatever the blocks."""

import numpy as np
import pytest
import torch
from sentence_transformers.util import community_detection, paraphrase_mining_embeddings

from ctxsim_hf.mining import communities, pair_mining
from ctxsim_hf.mining.communities import count_neighbours, find_communities
from ctxsim_hf.mining.pair_mining import mine_pairs
from ctxsim_hf.mining.unrelated import MAX_THRESHOLD, UnrelatedPairs, rare_percentile


def unit(vectors: np.ndarray) -> np.ndarray:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def vectors() -> np.ndarray:
    """Groups of near copies, each around a direction of its own, and vectors that are like no other."""
    draw = np.random.default_rng(0)
    groups = [draw.normal(size=16) + 0.2 * draw.normal(size=(size, 16)) for size in (9, 7, 5, 4, 3, 2)]
    shuffled = draw.permutation(np.concatenate([*groups, draw.normal(size=(170, 16))]))
    return unit(shuffled)


@pytest.fixture(params=[(3, 7), (64, 64), (1024, 8192)], ids=str)
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (pair_mining, communities):
        monkeypatch.setattr(module, "ROWS", request.param[0])
        monkeypatch.setattr(module, "COLUMNS", request.param[1])


def test_all_pairs_that_reach_the_threshold(vectors: np.ndarray, blocks: None) -> None:
    mined = mine_pairs(vectors, 0.6)
    exact = vectors.astype(np.float64) @ vectors.T
    expected = {(i, j) for i in range(len(vectors)) for j in range(i + 1, len(vectors)) if exact[i, j] >= 0.6}
    assert len(expected) > 80 and set(map(tuple, mined.places.tolist())) == expected
    np.testing.assert_allclose(mined.similarities, exact[tuple(mined.places.T)], atol=1e-6)
    assert (np.diff(mined.similarities) <= 0).all()


@pytest.mark.parametrize("limit", [1, 10, 40])
def test_the_best_pairs(vectors: np.ndarray, blocks: None, limit: int) -> None:
    everything, best = mine_pairs(vectors, -0.9), mine_pairs(vectors, -0.9, max_pairs=limit)
    np.testing.assert_array_equal(best.places, everything.places[:limit])
    np.testing.assert_array_equal(best.similarities, everything.similarities[:limit])


def test_many_equal_sentences_do_not_fill_the_memory(blocks: None) -> None:
    equal = np.repeat(unit(np.ones((1, 8))), 150, axis=0)
    assert len(mine_pairs(equal, 0.9, max_pairs=20).places) == 20


def test_the_pairs_of_sentence_transformers(vectors: np.ndarray, blocks: None) -> None:
    theirs = paraphrase_mining_embeddings(torch.from_numpy(vectors), top_k=len(vectors), max_pairs=60)
    ours = mine_pairs(vectors, -1, max_pairs=60)
    assert {(i, j) for _, i, j in theirs} == set(map(tuple, ours.places.tolist()))
    np.testing.assert_allclose([score for score, *_ in theirs], ours.similarities, atol=1e-5)


@pytest.mark.parametrize(("threshold", "min_size"), [(0.8, 2), (0.6, 3), (0.5, 5), (0.99, 2)])
def test_the_communities_of_sentence_transformers(
    vectors: np.ndarray, blocks: None, monkeypatch: pytest.MonkeyPatch, threshold: float, min_size: int
) -> None:
    monkeypatch.setattr(communities, "CENTRES", 4)
    theirs = community_detection(torch.from_numpy(vectors), threshold=threshold, min_community_size=min_size)
    ours = find_communities(vectors, threshold, min_size)
    assert [(found[0], sorted(found)) for found in theirs] == [
        (int(found.members[0]), sorted(found.members.tolist())) for found in ours
    ]
    exact = vectors.astype(np.float64) @ vectors.T
    for found in ours:
        np.testing.assert_allclose(found.similarities, exact[found.members[0], found.members], atol=1e-6)
        assert (np.diff(found.similarities) <= 0).all()
        assert found.typical == found.members[exact[np.ix_(found.members, found.members)].sum(1).argmax()]


def test_neighbours_are_counted_once(vectors: np.ndarray, blocks: None) -> None:
    exact = vectors @ vectors.T
    np.testing.assert_array_equal(count_neighbours(vectors, 0.55), (exact >= 0.55).sum(1))


def test_a_threshold_from_unrelated_pairs() -> None:
    vectors = unit(np.random.default_rng(1).normal(size=(6000, 32)))
    pairs = UnrelatedPairs.sample(vectors)
    cosines = (vectors @ vectors.T)[np.triu_indices(len(vectors), 1)]
    for percentile in (50, 99, 99.9):
        assert pairs.threshold(percentile) == pytest.approx(np.percentile(cosines, percentile), abs=0.01)
    # Beyond what the sample shows, the tail of such vectors falls off faster than assumed: the threshold is safe.
    beyond = rare_percentile(len(vectors), 0.01)
    assert (cosines >= pairs.threshold(beyond)).mean() <= 1 - beyond / 100
    assert pairs.threshold(beyond) > pairs.threshold(99.99)
    assert UnrelatedPairs.sample(vectors[:1]).threshold(99) == MAX_THRESHOLD


def test_a_larger_corpus_needs_a_higher_percentile() -> None:
    assert [rare_percentile(number, 0.1) for number in (1, 100, 1_000_000)] == pytest.approx([90, 99.9, 99.99999])
