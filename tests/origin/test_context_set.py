"""How contexts are chosen: worked examples, and sets from a real index."""

from pathlib import Path

import numpy as np
import pytest
from planted import PlantedCorpus

from ctxsim_hf.context_models.score_weights import ScoreWeights
from ctxsim_hf.origin.context_index import sentence_key
from ctxsim_hf.origin.context_set import jaccard, select
from ctxsim_hf.origin.similarity import OriginSimilarity
from ctxsim_hf.text.tokenized import TokenizedSentences


def sentences_of(*rows: list[int]) -> TokenizedSentences:
    starts = np.cumsum([0, *map(len, rows)])
    return TokenizedSentences(np.array([token for row in rows for token in row], dtype=np.uint16), starts)


def test_jaccard() -> None:
    """Two of four tokens shared; one of three, however often it is said; none; nothing at all."""
    found = jaccard(sentences_of([1, 2, 3], [2, 3, 4], [3, 3, 3], [9], [], []))
    np.testing.assert_allclose(found[0], [1, 0.5, 1 / 3, 0, 0, 0])
    np.testing.assert_allclose(found[4], [0, 0, 0, 0, 1, 1])
    np.testing.assert_array_equal(found, found.T)
    assert jaccard(sentences_of([], [])).tolist() == [[1, 1], [1, 1]]


def test_selection_by_hand() -> None:
    """Best first: the first is taken; the second is of the same chunk; the third shares 2 of 3 tokens with the first;
    the fourth 1 of 3; the others differ."""
    chunks = np.array([0, 0, 1, 2, 3, 4])
    likeness = jaccard(sentences_of([1, 2], [7], [1, 2, 3], [1, 4], [8], [9]))
    assert select(chunks, likeness, 3, 0.5) == [0, 3, 4]
    assert select(chunks, likeness, 10, 0.5) == [0, 3, 4, 5]
    assert select(chunks, likeness, 10, 0.7) == [0, 2, 3, 4, 5]
    assert select(chunks, likeness, 10, 2 / 3) == [0, 3, 4, 5]  # as much as the limit is too much


@pytest.fixture(scope="module")
def sentence() -> str:
    return PlantedCorpus().probes(1)[0].sentence


def context_set(planted: Path, sentence: str, **settings: object) -> tuple[OriginSimilarity, np.ndarray]:
    origin = OriginSimilarity.from_pretrained(planted / "origin", **settings)
    (contexts,) = origin.contexts.sets([sentence])
    return origin, contexts


def test_two_step_follows_its_own_definition(planted: Path, sentence: str) -> None:
    """By brute force: rank all contexts of the screened chunks by the discriminator in full precision, then by S."""
    origin, contexts = context_set(planted, sentence, num_contexts=20, weights=ScoreWeights())
    index, scorer = origin.index, origin.contexts.scorer
    key = np.array([sentence_key(sentence)], np.uint64)
    ((chunks, _),) = index.tfidf.search([sentence], origin.settings.screen_chunks)
    candidates = index.without(key, index.screened_contexts(np.sort(chunks)))
    terms = scorer.terms(scorer.prepare_sentences([sentence]), scorer.prepare_contexts(index.contexts(candidates)))
    reached = candidates[np.argsort(-terms["discriminative"][0], kind="stable")][:80]
    (fit,) = scorer.score([sentence], index.contexts(reached))
    best = reached[np.argmax(fit)]
    assert contexts[0] == best
    assert set(contexts) <= set(reached)
    (chosen_fit,) = scorer.score([sentence], index.contexts(contexts))
    assert (np.diff(chosen_fit) <= 0).all()


def test_diversity(planted: Path, sentence: str) -> None:
    origin, contexts = context_set(planted, sentence, num_contexts=30)
    store = origin.index.chunks
    assert len(contexts) == 30 and len(set(store.chunks_of(contexts))) == 30
    words = [set(store.pick(np.array([context - 1])).tokens.tolist()) for context in contexts]
    assert all(len(a & b) / len(a | b) < 0.5 for i, a in enumerate(words) for b in words[:i])
    _, repeated = context_set(planted, sentence, num_contexts=30, strategy="no_diversity")
    assert len(set(store.chunks_of(repeated))) < 30


def test_random_contexts_depend_on_seed_and_sentence_alone(planted: Path, sentence: str) -> None:
    first, again, other = (
        context_set(planted, sentence, strategy="random", num_contexts=10, seed=seed)[1] for seed in (0, 0, 1)
    )
    assert len(first) == 10
    np.testing.assert_array_equal(first, again)
    assert set(first) != set(other)


def test_sentence_of_the_corpus_meets_no_context_that_holds_it(planted: Path) -> None:
    origin = OriginSimilarity.from_pretrained(planted / "origin", num_contexts=50)
    index = origin.index
    (sentence,) = index.texts([4])
    (contexts,) = origin.contexts.sets([sentence.upper()])  # case and punctuation do not matter
    left, right = index.chunks.neighbours(contexts, index.width)
    sides = np.concatenate([left.ravel(), right.ravel()])
    assert sentence_key(sentence.upper()) == index.sentence_keys[4]
    assert index.sentence_keys[4] not in index.sentence_keys[sides[sides >= 0]]


def test_fewer_contexts_than_asked_is_said(planted: Path, sentence: str, caplog: pytest.LogCaptureFixture) -> None:
    origin, contexts = context_set(planted, sentence, num_contexts=5000)
    assert 0 < len(contexts) < 5000
    origin.similarity([sentence], [sentence])
    assert "1 sentences have fewer than 5000 contexts" in caplog.text


def test_cache_on_disk(planted: Path, sentence: str, tmp_path: Path) -> None:
    """Kept for the same settings only, and made again where it is damaged or was kept for another sentence."""
    origin = OriginSimilarity.from_pretrained(planted / "origin", num_contexts=10, cache_folder=tmp_path)
    (built,) = origin.contexts.sets([sentence])
    (file,) = tmp_path.rglob("*.contexts")
    whole = file.read_bytes()

    def kept() -> np.ndarray:
        again = OriginSimilarity.from_pretrained(planted / "origin", num_contexts=10, cache_folder=tmp_path)
        again.contexts.sets.candidates = pytest.fail if file.read_bytes() == whole else origin.contexts.sets.candidates
        return next(again.contexts.sets([sentence]))

    list(origin.contexts.sets([sentence + " Another."]))
    (other_file,) = set(tmp_path.rglob("*.contexts")) - {file}
    damages = (whole[:-8], whole[:9], b"", whole[:-1] + b"x", other_file.read_bytes())
    for content in (whole, *damages):
        file.write_bytes(content)
        np.testing.assert_array_equal(kept(), built)
        assert file.read_bytes() == whole
    other = OriginSimilarity.from_pretrained(planted / "origin", num_contexts=11, cache_folder=tmp_path)
    (fresh,) = other.contexts.sets([sentence])
    assert len(fresh) == 11
