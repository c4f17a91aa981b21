"""Which contexts are looked at, and in which order, with a ranker and without."""

from pathlib import Path

import numpy as np
import pytest
from planted import PlantedCorpus

from ctxsim_hf.origin.candidates import Candidates
from ctxsim_hf.origin.context_index import sentence_key
from ctxsim_hf.origin.similarity import OriginSimilarity


@pytest.fixture(scope="module")
def origin(planted: Path) -> OriginSimilarity:
    return OriginSimilarity.from_pretrained(planted / "origin", num_contexts=10)


def test_the_order_of_screening(origin: OriginSimilarity) -> None:
    """Without a ranker: the first context of every chunk, nearest chunk first, then the second of every chunk, ..."""
    sentence = PlantedCorpus().probes(1)[0].sentence
    ((chunks, _),) = origin.index.tfidf.search([sentence], 30)
    assert (np.diff(chunks) < 0).any(), "nearest first, not in the order of the corpus"
    starts, ends = origin.index.chunks.chunk_starts[:-1], origin.index.chunks.chunk_starts[1:]
    longest = int((ends - starts)[chunks].max())
    expected = [
        starts[chunk] + place
        for place in range(1, longest - 1)  # the first and the last sentence have a neighbour on one side only
        for chunk in chunks
        if starts[chunk] + place < ends[chunk] - 1
    ]
    (found,) = Candidates(origin.index, 30)([sentence])
    assert found.tolist() == expected


def test_both_orders_hold_the_same_contexts(origin: OriginSimilarity) -> None:
    """Those of the chunks found, but for those with one of the sentences on a side."""
    index = origin.index
    sentences = index.texts([4, 40])
    ranked = list(Candidates(index, 50, ("discriminator", origin.models["discriminator"]))(sentences))  # type: ignore[arg-type]
    in_turn = list(Candidates(index, 50)(sentences))
    keys = {sentence_key(sentence) for sentence in sentences}
    for one, other, (chunks, _) in zip(ranked, in_turn, index.tfidf.search(sentences, 50), strict=True):
        assert one.tolist() != other.tolist() and set(one.tolist()) == set(other.tolist())
        left, right = index.chunks.neighbours(one, index.width)
        assert not keys & set(index.sentence_keys[np.concatenate([left, right])].ravel().tolist())
        assert len(one) < len(index.screened_contexts(chunks)), "some were left out"
