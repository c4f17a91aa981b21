"""Tasks: rows as they stand, some of them spread evenly, and one line for what is missing."""

import json
from pathlib import Path

import pytest

from ctxsim_hf.evaluation.examples import GradedPairs, Triplets
from ctxsim_hf.evaluation.tasks import STS, TASKS, expand_tasks, load_task
from ctxsim_hf.runtime.errors import UserError


def test_pairs_as_they_stand(data_root: Path) -> None:
    pairs = load_task("stsb", "test", data_root)
    assert isinstance(pairs, GradedPairs)
    assert (pairs.task, pairs.split, len(pairs)) == ("stsb", "test", 6)
    assert (pairs.sentences1[1], pairs.sentences2[1], pairs.scores[1]) == ("a cat sleeps", "a cat eats", 3.0)
    assert len(load_task("stsb", "validation", str(data_root))) == 12


def test_some_pairs_are_spread_evenly(data_root: Path) -> None:
    pairs = load_task("stsb", "test", data_root)
    some = pairs.some(3)
    assert isinstance(pairs, GradedPairs) and isinstance(some, GradedPairs)
    assert some.sentences1 == [pairs.sentences1[row] for row in (0, 2, 4)]
    assert some.sentences2 == [pairs.sentences2[row] for row in (0, 2, 4)]
    assert some.scores.tolist() == pairs.scores[[0, 2, 4]].tolist()
    assert pairs.some(100).pairs() == pairs.pairs()


def test_triplets(data_root: Path) -> None:
    triplets = load_task("wikipedia-sections", "validation", data_root)
    assert isinstance(triplets, Triplets) and len(triplets) == 3
    assert triplets.pairs() == (["a1", "a2", "a3"] * 2, ["p1", "p2", "p3", "n1", "n2", "n3"])
    assert triplets.some(2).pairs() == (["a1", "a2"] * 2, ["p1", "p2", "n1", "n2"])


def test_words_for_several() -> None:
    assert expand_tasks(["stsb", "sts", "afs"]) == [
        "stsb",
        "sts12",
        "sts13",
        "sts14",
        "sts15",
        "sts16",
        "sickr",
        "afs",
    ]
    assert expand_tasks(["all"]) == list(TASKS)
    assert len(STS) == 7


def test_every_task_as_published(shared_data: Path) -> None:
    sizes = {name: len(load_task(name, "test", shared_data)) for name in TASKS}
    assert sizes == {
        **{"sts12": 3108, "sts13": 1500, "sts14": 3750, "sts15": 3000, "sts16": 1186, "stsb": 1379, "sickr": 9927},
        **{"afs": 6000, "wikipedia-sections": 4467},
    }


@pytest.mark.parametrize(
    ("name", "split", "message"),
    [
        ("sts-b", "test", "unknown task 'sts-b'; expected one of sts12, .*all"),
        ("stsb", "dev", "'stsb' has no split 'dev'; expected one of validation, test, train"),
    ],
)
def test_unknown_names(data_root: Path, name: str, split: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load_task(name, split, data_root)


def test_data_that_is_not_there(tmp_path: Path, data_root: Path) -> None:
    with pytest.raises(UserError, match=r"in the folder '.*mteb/stsbenchmark-sts', which does not exist"):
        load_task("stsb", "test", tmp_path)
    with pytest.raises(UserError, match=r"expected the split 'train' of a dataset in .*mteb/stsbenchmark-sts"):
        load_task("stsb", "train", data_root)  # the folder has no such file
    with pytest.raises(UserError, match=r"in 'mteb/stsbenchmark-sts': .* --data-root"):
        load_task("stsb", "test")  # the Hub, without a network


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"sentence1": "a", "sentence2": "b", "label": 1}, "a column 'score' in .* found only sentence1, sentence2"),
        (
            {"sentence1": "a", "sentence2": "b", "score": -1},
            "from 0 to 5 in .* 1 of 1 are outside, the first in row 0",
        ),
        ({"sentence1": "a", "sentence2": "b", "score": None}, "1 of 1 are outside, the first in row 0: nan"),
        ({"sentence1": "a", "sentence2": None, "score": 1}, "text in the column 'sentence2' of .* row 0 has None"),
        ({"sentence1": "a", "sentence2": 7, "score": 1}, "text in the column 'sentence2' of .* row 0 has 7"),
    ],
    ids=["column", "hidden", "null", "no text", "number"],
)
def test_data_that_is_another(tmp_path: Path, row: dict[str, object], message: str) -> None:
    folder = tmp_path / TASKS["stsb"].hub_id
    folder.mkdir(parents=True)
    (folder / "test.jsonl").write_text(json.dumps(row))
    with pytest.raises(UserError, match=message):
        load_task("stsb", "test", tmp_path)
