"""How pairs are drawn: worked examples, and groups of a real index against brute force."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from ctxsim_hf.harvest.drawing import NEAR_CHUNKS, PAIR_SPLITS, Drawing, Group, Mix, split_of, spread_ranks
from ctxsim_hf.harvest.plan import make_plan, pairs_by_split
from ctxsim_hf.origin.context_index import ContextIndex, sentence_key
from ctxsim_hf.origin.similarity import OriginSimilarity
from ctxsim_hf.runtime.errors import UserError

MIX = Mix(near=6, document=4, unrelated=2, farthest=64, random_share=0.25)


@pytest.fixture
def index(origin: OriginSimilarity) -> ContextIndex:
    return origin.index


def draw(index: ContextIndex, mix: Mix = MIX, seed: int = 0) -> Drawing:
    return Drawing(index, mix, (5, 40), seed)


def test_ranks_are_spread() -> None:
    assert spread_ranks(5, 256).tolist() == [1, 4, 16, 64, 256]
    assert spread_ranks(6, 12).tolist() == [1, 2, 3, 4, 7, 12]
    assert spread_ranks(9, 3).tolist() == [1, 2, 3], "no more than there are"
    assert spread_ranks(1, 50).tolist() == [1]
    assert spread_ranks(0, 50).tolist() == spread_ranks(3, 0).tolist() == []


def test_the_split_is_fixed_by_the_normalised_text() -> None:
    texts = ["A cat sat.", "a cat SAT", "A cat... sat!"]
    assert len({int(split_of(np.array([sentence_key(text)], np.uint64))[0]) for text in texts}) == 1
    keys = np.array([sentence_key(f"sentence {number}") for number in range(100_000)], np.uint64)
    shares = np.bincount(split_of(keys)) / len(keys)
    assert shares == pytest.approx([0.98, 0.01, 0.01], abs=0.002)


def test_no_sentence_is_drawn_twice_or_into_another_split(index: ContextIndex) -> None:
    drawing = draw(index)
    available = {split: drawing.num_sentences(split) for split in PAIR_SPLITS}
    drawn = {split: np.concatenate([group.sentences for group in drawing.groups(split)]) for split in PAIR_SPLITS}
    together = np.concatenate(list(drawn.values()))
    assert len(set(together.tolist())) == len(together) == sum(available.values())
    for place, split in enumerate(PAIR_SPLITS):
        assert (split_of(index.sentence_keys[drawn[split]]) == place).all()


def test_a_repeated_text_counts_once(index: ContextIndex) -> None:
    keys = np.array(index.sentence_keys)
    keys[[30, 700, 1500]] = keys[2000]
    drawing = draw(replace(index, sentence_keys=keys))
    drawn = {int(number) for split in PAIR_SPLITS for group in drawing.groups(split) for number in group.sentences}
    assert len(drawn & {30, 700, 1500, 2000}) == 1


def test_near_sentences_are_at_their_ranks(index: ContextIndex) -> None:
    """By brute force over tokens: how many sentences of the chunks found are nearer than each that was taken."""
    drawing = draw(index)
    store = index.chunks
    tokens = [row.tolist() for row in np.split(np.asarray(store.tokens), store.sentence_starts[1:-1])]
    counts = Counter(token for row in tokens for token in row)
    weight = {token: np.log((1 + counts.total()) / (1 + count)) ** 2 for token, count in counts.items()}
    group = next(drawing.groups("train"))
    seed = int(group.sentences[0])
    ((chunks, _),) = index.tfidf.search(index.texts([seed]), NEAR_CHUNKS)
    likeness = {
        number: sum(weight[t] for t in tokens[number] if t in tokens[seed])
        / sum(map(weight.get, tokens[number])) ** 0.5
        for chunk in chunks
        for number in range(store.chunk_starts[chunk], store.chunk_starts[chunk + 1])
        if split_of(index.sentence_keys[[number]])[0] == 0 and store.documents_of(number) != store.documents_of(seed)
    }
    for number, rank in zip(group.sentences[1:6].tolist(), group.ranks[1:6].tolist(), strict=True):
        nearer = sum(value > likeness[number] + 1e-9 for value in likeness.values())
        as_near = sum(value >= likeness[number] - 1e-9 for value in likeness.values())
        assert nearer < rank <= as_near
    assert group.ranks[1:6].tolist() == spread_ranks(5, 64).tolist()


def test_how_a_pair_was_drawn_by_hand(index: ContextIndex) -> None:
    """Chunks of the planted corpus have nine sentences: 9 begins the second."""
    group = Group(
        sentences=np.array([100, 200, 300, 7, 8, 9, 500]),
        families=np.array([0, 0, 0, 1, 1, 1, 2]),
        ranks=np.array([0, 3, 40, -1, -1, -1, -1]),
    )
    pairs = draw(index, replace(MIX, random_share=1)).pairs(group)
    found = {tuple(sorted(pair)): way for pair, way in zip(pairs.members.tolist(), pairs.drawn, strict=True)}
    assert len(found) == 21
    assert found[0, 1] == "near_4" and found[0, 2] == found[1, 2] == "near_64"
    assert found[3, 4] == "adjacent"
    assert found[4, 5] == found[3, 5] == "same_document", "something may be missing between two chunks"
    assert {found[0, 3], found[0, 6], found[5, 6]} == {"random"}


def test_a_hash_settles_order_and_choice(index: ContextIndex) -> None:
    """However the members of a group are ordered, the same pairs come out the same way round."""
    drawing = draw(index)
    group = next(drawing.groups("train"))
    turned = Group(group.sentences[::-1], group.families[::-1], group.ranks[::-1])
    both = [one.sentences[drawing.pairs(one).members].tolist() for one in (group, turned)]
    assert both[0] == both[1]
    drawn = drawing.pairs(group).drawn
    assert len(drawn) == 28 and (drawn == "random").sum() == 7, "15 near, 6 of a document, a quarter random"
    pairs = draw(index, replace(MIX, random_share=1)).pairs(group)
    first, second = index.sentence_keys[group.sentences[pairs.members]].T
    assert 0.25 < (first < second).mean() < 0.75


def test_the_seed_decides(index: ContextIndex) -> None:
    first, again, other = (next(draw(index, seed=seed).groups("train")).sentences for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert set(first.tolist()) != set(other.tolist())


def test_a_plan_has_the_pairs_asked_for(index: ContextIndex) -> None:
    assert pairs_by_split(1234) == {"train": 1210, "validation": 12, "test": 12}
    blocks = make_plan(draw(index), 1234, pairs_per_file=200)
    assert sum(block.num_pairs for block in blocks) == 1234
    sizes = Counter[str]()
    for block in blocks:
        sizes[block.name.split("/")[1].split("-")[0]] += block.num_pairs
    assert sizes == pairs_by_split(1234)
    assert blocks[0].name == "data/train-00000-of-00006.parquet" and 200 <= blocks[0].num_pairs < 228


def test_too_few_sentences_are_counted(index: ContextIndex) -> None:
    with pytest.raises(
        UserError, match=r"too few sentences for 30000 pairs \(train: 4013 sentences give \d+ of 29400"
    ):
        make_plan(draw(index), 30_000, 1000)
    scarce = replace(index, sentence_keys=np.full_like(index.sentence_keys, 2))
    with pytest.raises(UserError, match=r"validation: 0 sentences give 0 of 1 pairs.*even for 100; index more"):
        make_plan(draw(scarce), 100, 1000)
