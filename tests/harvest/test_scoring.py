"""Labels by two roads: what a harvest says of a pair, and what Origin's own parts say of it by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from ctxsim_hf.origin.comparison import COMPARISONS, comparable, context_spread, cosine
from ctxsim_hf.origin.context_pool import choose_pool
from ctxsim_hf.origin.context_set import jaccard
from ctxsim_hf.origin.similarity import OriginSimilarity
from ctxsim_hf.runtime.errors import UserError

SETTINGS: list[dict[str, Any]] = [
    *({"compare_by": name} for name in COMPARISONS),
    {"signals": {"contexts": 1, "words": 0.5}},
]
PAIRS = np.array([[0, 1], [2, 0], [1, 2], [3, 7]])


@pytest.fixture(scope="module")
def sentences(origin: OriginSimilarity) -> list[str]:
    return origin.index.texts(np.arange(100, 3000, 365))


def open_origin(planted: Path, **settings: Any) -> OriginSimilarity:
    small = {"num_contexts": 10, "background_size": 40, "screen_chunks": 100}
    return OriginSimilarity.from_pretrained(planted / "origin", **small | settings)


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_pair_has_the_score_of_origin(planted: Path, sentences: list[str], settings: dict[str, Any]) -> None:
    origin = open_origin(planted, **settings)
    scores, spreads = origin.label(sentences, PAIRS, "pair")
    first, second = ([sentences[member] for member in side] for side in PAIRS.T)
    expected = list(origin.compare(first, second))
    np.testing.assert_allclose(scores, [pair.similarity for pair in expected], atol=1e-5)
    np.testing.assert_allclose(spreads, [pair.spread for pair in expected], atol=1e-5)


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_group_is_compared_in_its_pool(planted: Path, sentences: list[str], settings: dict[str, Any]) -> None:
    origin = open_origin(planted, **settings)
    scores, spreads = origin.label(sentences, PAIRS, "group")
    contexts, _ = choose_pool(origin.contexts.sets, sentences, 20)
    scorer, found = origin.contexts.scorer, origin.index.contexts(contexts)
    background = scorer.score(origin.background, found)
    vectors = comparable(origin.settings.compare_by, scorer.score(sentences, found), background)
    share = origin.shares["contexts"]
    assert ("words" in origin.signals) == (share < 1)
    for (first, second), score, spread in zip(PAIRS, scores, spreads, strict=True):
        expected = cosine(vectors[first], vectors[second])
        if share < 1:
            overlap = origin.signals["words"].similarity([sentences[first]], [sentences[second]])[0]
            expected = share * expected + (1 - share) * overlap
        assert score == pytest.approx(expected, abs=1e-5)
        assert spread == pytest.approx(share * context_spread(vectors[first], vectors[second]), abs=1e-5)


def test_every_score_is_computed_once(
    origin: OriginSimilarity, sentences: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = list(origin.contexts.sets(sentences))  # found beforehand, and remembered
    shapes = []
    terms = origin.contexts.scorer.terms

    def counting(*prepared: Any) -> dict[str, np.ndarray]:
        found = terms(*prepared)
        shapes.append(next(iter(found.values())).shape)
        return found

    monkeypatch.setattr(origin.contexts.scorer, "terms", counting)
    every_pair = np.stack(np.triu_indices(len(sentences), 1), axis=1)
    origin.label(sentences, every_pair, "pair")
    different = len(np.unique(np.concatenate(sets)))
    assert shapes == [(len(sentences), different), (40, different)]


def test_a_pool_is_diverse_and_holds_no_sentence_of_the_group(origin: OriginSimilarity) -> None:
    index, store = origin.index, origin.index.chunks
    sentences = index.texts(np.arange(90, 99))  # of one chunk, the context of which fits them best
    contexts, scores = choose_pool(origin.contexts.sets, sentences, 20)
    assert len(contexts) == 20 and scores.shape == (9, 20)
    assert len(set(store.chunks_of(contexts).tolist())) == 20
    likeness = jaccard(store.pick(contexts - 1))
    assert (likeness[~np.eye(20, dtype=bool)] < 0.5).all()
    sides = {text for chunk, place in index.chunk_of(contexts) for text in chunk.sentences[place - 1 : place + 2 : 2]}
    assert not sides & set(sentences)


def test_both_modes_agree(planted: Path) -> None:
    origin = open_origin(planted, num_contexts=40, background_size=100)
    sentences = origin.index.texts(np.arange(100, 3000, 100))
    pairs = np.stack(np.triu_indices(len(sentences), 1), axis=1)
    labels = [origin.label(sentences, pairs, mode)[0] for mode in ("pair", "group")]
    assert spearmanr(*labels)[0] > 0.8


def test_a_group_needs_contexts_that_were_looked_for(planted: Path, sentences: list[str]) -> None:
    with pytest.raises(UserError, match="by the strategy 'two_step', not 'random'; use the mode 'pair'"):
        open_origin(planted, strategy="random").label(sentences, PAIRS, "group")


def test_a_seq2seq_origin_too(planted: Path, sentences: list[str]) -> None:
    origin = OriginSimilarity.from_pretrained(planted / "origin-seq2seq", num_contexts=4, background_size=6)
    scores, _ = origin.label(sentences[:3], PAIRS[:2], "pair")
    expected = origin.similarity([sentences[0], sentences[2]], [sentences[1], sentences[0]])
    np.testing.assert_allclose(scores, expected, atol=1e-4)
    assert np.isfinite(origin.label(sentences[:3], PAIRS[:2], "group")[0]).all()
