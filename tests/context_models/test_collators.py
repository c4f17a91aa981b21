"""Collators by hand, and negatives that are never the sentence nor a neighbour."""

import numpy as np
import pytest
import torch

from ctxsim_hf.context_models.collators import SentenceCollator, draw_negatives
from ctxsim_hf.context_models.context_data import ContextData
from ctxsim_hf.context_models.sentence_tensors import SpecialIds
from ctxsim_hf.context_models.seq2seq.windows import GeneratorCollator
from ctxsim_hf.text.tokenized import TokenizedChunks

SPECIAL = SpecialIds(bos=0, pad=1, eos=2)
# Two chunks of one document, then one of another. Sentence i consists of i % 3 + 1 tokens 10 + i.
CHUNKS = TokenizedChunks(
    tokens=np.repeat(np.arange(10, 21), [i % 3 + 1 for i in range(11)]).astype(np.uint16),
    sentence_starts=np.concatenate([[0], np.cumsum([i % 3 + 1 for i in range(11)])]),
    chunk_starts=np.array([0, 4, 7, 11]),
    document_starts=np.array([0, 7, 11]),
)


def test_sentences_once_and_where_each_stands() -> None:
    tensors = SentenceCollator(CHUNKS, 2, 64, SPECIAL)(np.array([1, 2, 8]))
    ids = tensors["input_ids"]
    assert ids[:, 0].tolist() == [10, 11, 12, 13, 17, 18, 19, 20]
    assert ids[2].tolist() == [12, 12, 12, 2] and ids[0].tolist() == [10, 2, 1, 1]
    assert torch.equal(tensors["attention_mask"], (ids != 1).long())
    assert tensors["left_index"].tolist() == [[0, -1], [1, 0], [4, -1]]
    assert tensors["sentence_index"].tolist() == [1, 2, 5]
    assert tensors["right_index"].tolist() == [[2, 3], [3, -1], [6, 7]]


def test_candidates_and_truncation() -> None:
    tensors = SentenceCollator(CHUNKS, 1, 2, SPECIAL)(np.array([1]), np.array([[1, 5, 8]]))
    assert tensors["input_ids"][tensors["sentence_index"][0]].tolist() == [[11, 11, 2], [15, 15, 2], [18, 18, 2]]
    assert tensors["input_ids"].shape[1] == 3


@pytest.mark.parametrize(
    ("direction", "source", "places", "target"),
    [
        ("sentence", [0, 10, 2, 12, 12, 12, 2, 13, 2], [0, 1, 1, 3, 3, 3, 3, 4, 4], [11, 11, 2]),
        ("left", [0, 11, 11, 2, 12, 12, 12, 2, 13, 2], [0, 2, 2, 2, 3, 3, 3, 3, 4, 4], [10, 2]),
        ("right", [0, 10, 2, 11, 11, 2], [0, 1, 1, 2, 2, 2], [12, 12, 12, 2, 13, 2]),
    ],
)
def test_source_and_target_of_a_generator(
    direction: str, source: list[int], places: list[int], target: list[int]
) -> None:
    collator = GeneratorCollator(CHUNKS, 2, 64, SPECIAL)
    tensors = collator(np.array([1]), direction)
    assert tensors["input_ids"][0].tolist() == source
    assert tensors["sentence_ids"][0].tolist() == places
    assert tensors["labels"][0].tolist() == target
    sources, targets = collator.lengths(np.array([1]), direction)
    assert (sources.tolist(), targets.tolist()) == ([len(source)], [len(target)])


def test_generator_padding_and_direction_ids() -> None:
    tensors = GeneratorCollator(CHUNKS, 1, 64, SPECIAL, one_model_for_all=True)(np.array([1, 9]), "right")
    assert tensors["labels"].tolist() == [[12, 12, 12, 2], [20, 20, 2, -100]]
    assert tensors["attention_mask"].tolist() == [[1] * 6 + [0], [1] * 7]
    assert tensors["direction_ids"].tolist() == [2, 2]


def test_negatives_by_property(data: ContextData) -> None:
    chunks = data.train
    contexts = chunks.contexts_of(np.arange(0, len(chunks.chunk_starts) - 1, 3))
    documents = chunks.documents_of(contexts)
    drawn = np.stack([draw_negatives(chunks, contexts, np.random.default_rng(seed)) for seed in range(30)])
    same, other = drawn[:, :, 0], drawn[:, :, 1]
    assert (chunks.documents_of(same) == documents).all()
    assert (np.abs(same - contexts) > 1).all(), "neither the sentence itself nor a neighbour"
    assert (chunks.documents_of(other) != documents).all()
    # Uniform over the document: the first and the last sentence of a long one come up as often as any.
    sizes = np.diff(chunks.document_starts)[documents]
    firsts, lasts = chunks.document_starts[documents], chunks.document_starts[documents + 1] - 1
    expected = (1 / (sizes - 3)).sum() * 30
    assert 0.7 * expected < (same == firsts).sum() < 1.3 * expected
    assert 0.7 * expected < (same == lasts).sum() < 1.3 * expected
    again = draw_negatives(chunks, contexts, np.random.default_rng(3))
    assert np.array_equal(again, drawn[3])


def test_negatives_where_a_kind_is_missing() -> None:
    contexts = np.array([1, 2, 5])  # one document only: none from others
    drawn = draw_negatives(CHUNKS, contexts, np.random.default_rng(0))
    assert np.array_equal(drawn[:, 0], drawn[:, 1])
    short = TokenizedChunks(CHUNKS.tokens, CHUNKS.sentence_starts, np.array([0, 3, 7]), np.array([0, 3, 7]))
    drawn = draw_negatives(short, np.array([1, 4]), np.random.default_rng(0))  # a document of three sentences
    assert drawn[0].tolist() == [4, 4]
