"""From pairs to batches: groups are found again, every pair comes once, every sentence of a batch is read once."""

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
import torch
from transformers import AutoTokenizer

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.surrogate.labelled_rows import LabelledRows, join_rows, tokenize_rows
from ctxsim_hf.surrogate.labels import LabelMap, spread_weights
from ctxsim_hf.surrogate.row_batches import RowCollator
from ctxsim_hf.text.marks import Marks

MARKS = Marks(before=(0,), after=(2,), pad=1)


@pytest.fixture(scope="module")
def tokenizer(corpus):
    return AutoTokenizer.from_pretrained(corpus / "tokenizer")


def rows_of(tokenizer, *columns: list[str]) -> LabelledRows:
    arrays = [pa.chunked_array([pa.array(column)]) for column in columns]
    return tokenize_rows(tokenizer, arrays, np.arange(len(columns[0])))[0]


def cliques(tokenizer, groups: int, size: int) -> LabelledRows:
    """All pairs of each of so many groups, shuffled."""
    pairs = [(f"g{g} w{a}", f"g{g} w{b}") for g in range(groups) for a, b in combinations(range(size), 2)]
    order = np.random.default_rng(0).permutation(len(pairs))
    return rows_of(tokenizer, *map(list, zip(*(pairs[i] for i in order), strict=True)))


def test_rows_that_share_a_sentence_are_one_group(tokenizer) -> None:
    rows = rows_of(tokenizer, ["a", "c", "b", "e"], ["b", "d", "f", "e"])  # a-b-f, c-d, e-e
    assert len(rows.sentences) == 6
    groups = [
        sorted(rows.labels[start:end]) for start, end in zip(rows.group_starts, rows.group_starts[1:], strict=False)
    ]
    assert sorted(groups) == [[0, 2], [1], [3]]


def test_the_groups_of_a_harvest_come_out_whatever_the_order_of_pairs(tokenizer) -> None:
    rows = cliques(tokenizer, groups=7, size=6)
    assert np.diff(rows.group_starts).tolist() == [15] * 7
    both = join_rows([rows, rows])
    assert np.diff(both.group_starts).tolist() == [15] * 14
    last = both.members[-1]
    np.testing.assert_array_equal(both.sentences.padded(last, 1, 9), rows.sentences.padded(rows.members[-1], 1, 9))


@pytest.mark.parametrize("budget", [10_000, 400, 60])  # all groups, some groups, less than a group
def test_every_row_comes_once_within_the_budget(tokenizer, budget: int) -> None:
    collator = RowCollator(cliques(tokenizer, groups=9, size=8), 20, MARKS)
    batches = collator.batches(budget, np.random.default_rng(0))
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(collator.rows)))
    for batch in batches:
        assert int(collator(batch)["attention_mask"].sum()) <= budget
    other = collator.batches(budget, np.random.default_rng(1))
    if budget < 10_000:
        assert [set(batch) for batch in batches] != [set(batch) for batch in other], "each epoch its own batches"


def test_a_budget_less_than_a_pair_is_refused(tokenizer) -> None:
    with pytest.raises(UserError, match="--tokens-per-batch 5 is less than"):
        RowCollator(cliques(tokenizer, 2, 3), 20, MARKS).batches(5, np.random.default_rng(0))


def test_a_sentence_is_read_once_for_all_its_pairs(tokenizer) -> None:
    """64 sentences with all their pairs, the groups of a harvest: 63 times less to read than pair by pair."""
    collator = RowCollator(cliques(tokenizer, groups=6, size=64), 20, MARKS)
    batches = collator.batches(2048, np.random.default_rng(0))
    read = sum(len(collator(batch)["input_ids"]) for batch in batches)
    assert 2 * len(collator.rows) / read == 63
    cut = collator.batches(300, np.random.default_rng(0))  # less than half a group: still several pairs a sentence
    assert 2 * len(collator.rows) / sum(len(collator(batch)["input_ids"]) for batch in cut) > 8


def test_members_point_at_the_sentences_longest_first(tokenizer) -> None:
    texts = ["a", "a longer one of more words", "two words"]
    rows = rows_of(tokenizer, [texts[0], texts[2]], [texts[1], texts[0]])
    batch = RowCollator(rows, 40, MARKS)(np.array([0, 1]))
    lengths = batch["attention_mask"].sum(1)
    assert (lengths[:-1] >= lengths[1:]).all()
    said = [tokenizer.decode(ids, skip_special_tokens=True).strip() for ids in batch["input_ids"]]
    pairs = [[said[place] for place in pair] for pair in batch["members"].tolist()]
    assert pairs == [[texts[0], texts[1]], [texts[2], texts[0]]]
    assert (batch["input_ids"][:, 0] == 0).all()
    assert batch["input_ids"][torch.arange(3), lengths - 1].tolist() == [2, 2, 2]


def test_a_long_sentence_is_cut(tokenizer) -> None:
    rows = rows_of(tokenizer, ["a " * 50], ["b"])
    collator = RowCollator(rows, 7, MARKS)
    ids = collator(np.array([0]))["input_ids"]
    assert ids.shape[1] == 9 and ids[0, -1] == 2


def test_labels_stretched_and_back() -> None:
    labels = np.linspace(0.9, 1.0, 1001)
    stretched = LabelMap.fit("stretched", labels)
    targets = stretched.target(labels)
    assert (targets.min(), targets.max()) == (-1, 1) and targets[500] == pytest.approx(0, abs=1e-5)
    np.testing.assert_allclose(stretched.label(targets)[5:-5], labels[5:-5], atol=1e-6)
    np.testing.assert_allclose(LabelMap.fit("as-is", labels).target(labels), labels, atol=1e-6)
    with pytest.raises(UserError, match=r"from -1 to 1.* but 1 of 2 are not, the first is 1\.5; .*--labels stretched"):
        LabelMap.fit("as-is", np.array([0.5, 1.5]))
    with pytest.raises(UserError, match="1 of 2 are not"):
        LabelMap.fit("as-is", np.array([0.5, np.nan]))
    with pytest.raises(UserError, match="needs different scores"):
        LabelMap.fit("stretched", np.full(5, 0.3))


def test_weights_by_spread_are_bounded_and_have_a_mean_of_one() -> None:
    spreads = np.array([0.1, 0.1, 0.1, 0.05, 0.001, np.nan])
    weights = spread_weights(spreads)
    assert weights.mean() == pytest.approx(1)
    np.testing.assert_allclose(weights / weights[0], [1, 1, 1, 4, 10, 0.1], rtol=1e-5)
    with pytest.raises(UserError, match="needs a column 'spread'"):
        spread_weights(np.full(3, np.nan))
