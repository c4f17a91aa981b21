"""Batches: everything once, within the budget, little padding, the same for the same seed."""

from pathlib import Path

import numpy as np
import pytest

from ctxsim_hf.context_models.context_data import ContextData
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.tokenized import TokenizedChunks
from ctxsim_hf.train.batches import chunk_batches, length_batches


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def tokens_of(chunks: TokenizedChunks, batch: np.ndarray, max_tokens: int) -> int:
    lengths = np.minimum(chunks.lengths, max_tokens) + 1
    return sum(int(lengths[chunks.chunk_starts[c] : chunks.chunk_starts[c + 1]].sum()) for c in batch)


def test_every_chunk_once_and_within_the_budget(data: ContextData) -> None:
    batches = chunk_batches(data.train, 1000, 8, rng())
    assert sorted(np.concatenate(batches)) == list(range(len(data.train.chunk_starts) - 1))
    sizes = [tokens_of(data.train, batch, 8) for batch in batches]
    assert max(sizes) <= 1000
    assert min(sizes[:-1]) > 700, "batches are filled"


def test_the_same_seed_gives_the_same_batches(data: ContextData) -> None:
    first, again, other = (chunk_batches(data.train, 1000, 8, rng(seed)) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[0], other[0])


def test_length_batches_hold_every_row_once_and_little_padding() -> None:
    sources, targets = rng().integers(10, 100, 20_000), rng(1).integers(5, 50, 20_000)
    batches = length_batches(sources, targets, 4000, rng())
    assert sorted(np.concatenate(batches)) == list(range(20_000))
    padded = [(sources[b].max() + targets[b].max()) * len(b) for b in batches]
    assert max(padded) <= 4000
    real = (sources + targets).sum()
    assert real / sum(padded) > 0.9
    shuffled = np.array_split(rng().permutation(20_000), len(batches))
    assert real / sum((sources[b].max() + targets[b].max()) * len(b) for b in shuffled) < 0.7


def test_a_budget_smaller_than_one_unit_is_refused(data: ContextData) -> None:
    with pytest.raises(UserError, match=r"--tokens-per-batch 20 is less than the \d+ tokens of the longest chunk"):
        chunk_batches(data.train, 20, 64, rng())
    with pytest.raises(UserError, match="--tokens-per-batch 20 is less than the 30 tokens of the longest context"):
        length_batches(np.array([10, 20]), np.array([5, 10]), 20, rng())


def test_contexts_and_neighbours(data: ContextData) -> None:
    chunks = data.train
    for chunk in range(5):
        first, end = chunks.chunk_starts[chunk : chunk + 2]
        contexts = chunks.contexts_of(np.array([chunk]))
        assert contexts.tolist() == list(range(first + 1, end - 1))
        left, right = chunks.neighbours(contexts, 2)
        for context, before, after in zip(contexts, left, right, strict=True):
            assert before.tolist() == [context - 1, context - 2 if context - 2 >= first else -1]
            assert after.tolist() == [context + 1, context + 2 if context + 2 < end else -1]


def test_tokenised_sentences_are_the_tokenizer_s(data: ContextData, corpus: Path) -> None:
    from ctxsim_hf import read_chunks

    rows = read_chunks(corpus / "chunks", "train")
    sentences = [sentence for row in rows for sentence in row["sentences"]]
    assert len(sentences) == len(data.train.lengths)
    picked = np.array([0, 7, len(sentences) - 1])
    matrix = data.train.padded(picked, pad=1, max_tokens=6, end=2)
    for row, place in zip(matrix, picked, strict=True):
        ids = data.tokenizer(sentences[place], add_special_tokens=False)["input_ids"][:6]
        assert row.tolist() == [*ids, 2] + [1] * (matrix.shape[1] - len(ids) - 1)
    assert len(data.train.document_starts) - 1 == len(set(rows["doc_id"]))
