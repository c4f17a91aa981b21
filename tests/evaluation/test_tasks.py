"""Tasks: rows as they stand, some of them spread evenly, and one line for what is missing."""

import json
from pathlib import Path

import pytest

from ctxsim_hf.errors import UserError
from ctxsim_hf.evaluation.tasks import TASKS, load_task


def test_pairs_as_they_stand(data_root: Path) -> None:
    pairs = load_task("stsb", "test", data_root)
    assert (pairs.task, pairs.split, len(pairs)) == ("stsb", "test", 6)
    assert (pairs.sentences1[1], pairs.sentences2[1], pairs.scores[1]) == ("a cat sleeps", "a cat eats", 3.0)
    assert len(load_task("stsb", "validation", str(data_root))) == 12


def test_some_pairs_are_spread_evenly(data_root: Path) -> None:
    pairs = load_task("stsb", "test", data_root)
    some = pairs.some(3)
    assert some.sentences1 == [pairs.sentences1[row] for row in (0, 2, 4)]
    assert some.sentences2 == [pairs.sentences2[row] for row in (0, 2, 4)]
    assert some.scores.tolist() == pairs.scores[[0, 2, 4]].tolist()
    assert pairs.some(100).sentences2 == pairs.sentences2


@pytest.mark.parametrize(
    ("name", "split", "message"),
    [
        ("sts-b", "test", "unknown task 'sts-b'; expected one of stsb"),
        ("stsb", "dev", "'stsb' has no split 'dev'; expected one of validation, test, train"),
    ],
)
def test_unknown_names(data_root: Path, name: str, split: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load_task(name, split, data_root)


def test_data_that_is_not_there(tmp_path: Path, data_root: Path) -> None:
    with pytest.raises(UserError, match=r"in a folder '.*mteb/stsbenchmark-sts', which does not exist"):
        load_task("stsb", "test", tmp_path)
    with pytest.raises(UserError, match=r"expected the data set of the task 'stsb' in .*train"):
        load_task("stsb", "train", data_root)  # the folder has no such file
    with pytest.raises(UserError, match=r"in 'mteb/stsbenchmark-sts': .* --data-root"):
        load_task("stsb", "test")  # the Hub, without a network


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"sentence1": "a", "sentence2": "b", "label": 1}, "a column 'score' in .* found only sentence1, sentence2"),
        (
            {"sentence1": "a", "sentence2": "b", "score": -1},
            "from 0 to 5 in .* 1 of 1 are outside, the first at pair 0",
        ),
        ({"sentence1": "a", "sentence2": "b", "score": None}, "1 of 1 are outside, the first at pair 0: nan"),
    ],
    ids=["column", "hidden", "null"],
)
def test_data_that_is_another(tmp_path: Path, row: dict[str, object], message: str) -> None:
    folder = tmp_path / TASKS["stsb"].hub_id
    folder.mkdir(parents=True)
    (folder / "test.jsonl").write_text(json.dumps(row))
    with pytest.raises(UserError, match=message):
        load_task("stsb", "test", tmp_path)
