"""Triplets from held-out documents alone, a planted similarity on them, and thresholds saved with a model."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from tiny_surrogate import save_tiny

from ctxsim_hf import SentenceEncoder, read_chunks
from ctxsim_hf.encoder.thresholds import Thresholds
from ctxsim_hf.evaluation.label_free import label_free_tasks
from ctxsim_hf.evaluation.results import judge
from ctxsim_hf.evaluation.systems import PairScorer
from ctxsim_hf.runtime.errors import UserError

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def chunks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents whose sentences say which they are of, and at what place they stand."""
    from ctxsim_hf.cli import main

    folder = tmp_path_factory.mktemp("label-free")
    with (folder / "texts.jsonl").open("w") as file:
        for number in range(60):
            sentences = [f"Document {number} has the sentence {place}." for place in range(12)]
            file.write(json.dumps({"id": number, "text": "\n\n".join(sentences)}) + "\n")
    words = ["chunk", "--corpus", folder / "texts.jsonl", "--held-out", 0.3, "--output", folder / "chunks"]
    assert main([str(word) for word in words]) == 0
    return folder / "chunks"


def parse(sentence: str) -> tuple[int, int]:
    words = sentence.rstrip(".").split()
    return int(words[1]), int(words[5])


def test_triplets(chunks: Path) -> None:
    held_out = {sentence for row in read_chunks(chunks, "held_out") for sentence in row["sentences"]}
    adjacent, document = label_free_tasks(str(chunks), 200)
    for task, distances in ((adjacent, {1}), (document, set(range(2, 11)))):
        assert len(task) == 200 and {*task.anchors, *task.positives, *task.negatives} <= held_out
        found = set()
        for anchor, positive, negative in zip(task.anchors, task.positives, task.negatives, strict=True):
            (one, place), (same, near), (other, _) = map(parse, (anchor, positive, negative))
            assert one == same != other
            found.add(near - place)
        assert found == distances
    assert label_free_tasks(str(chunks), 200) == [adjacent, document]


def test_planted_and_random_systems(chunks: Path) -> None:
    tasks = label_free_tasks(str(chunks), 400)

    def same_document(first: Sequence[str], second: Sequence[str]) -> np.ndarray:
        return np.array([parse(a)[0] == parse(b)[0] for a, b in zip(first, second, strict=True)])

    knows = PairScorer(same_document)
    chance = PairScorer(lambda first, second: np.random.default_rng(0).normal(size=len(first)))
    constant = PairScorer(lambda first, second: np.zeros(len(first)))
    assert [task.main.value for task in judge("knows", [knows], tasks).tasks] == [1, 1]
    assert all(task.main.low < 0.5 < task.main.high for task in judge("chance", [chance], tasks).tasks)
    assert [task.main.value for task in judge("constant", [constant], tasks).tasks] == [0.5, 0.5]


def test_the_command_and_the_thresholds(ctxsim: Run, chunks: Path, tmp_path: Path) -> None:
    folder = save_tiny(tmp_path / "surrogate")
    flags = ("--label-free", "--chunks", chunks, "--limit", 100)
    code, out, err = ctxsim("evaluate", f"surrogate:{folder}", "tfidf", *flags, "--output", tmp_path / "out")
    assert code == 0, err
    rows = json.loads((tmp_path / "out/results.json").read_text())["results"]
    assert [(row["task"], row["pairs"], row["split"]) for row in rows[:2]] == [
        ("adjacent", 100, "held_out"),
        ("document", 100, "held_out"),
    ]
    assert "paper:" not in out and Thresholds.load(folder) is None
    assert ctxsim("evaluate", f"surrogate:{folder}", *flags, "--save-thresholds")[0] == 0
    thresholds = Thresholds.load(folder)
    adjacent, _ = label_free_tasks(str(chunks), 100)
    encoder = SentenceEncoder.from_pretrained(folder)  # which opens the folder as before
    random = encoder.similarity(adjacent.anchors, adjacent.negatives)
    assert thresholds is not None and thresholds.pairs == 100
    assert thresholds.shares(float(np.median(random)))[0] == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("tfidf", "--label-free"), "--chunks DIR"),
        (("tfidf", "--save-thresholds"), "needs the scores of --label-free"),
        (("tfidf", "--label-free", "--chunks", "c", "--save-thresholds"), "the folder of a surrogate or an origin"),
        (("tfidf", "--label-free", "--chunks", "nowhere"), "nowhere"),
    ],
)
def test_what_a_user_can_get_wrong(ctxsim: Run, words: tuple[str, ...], message: str) -> None:
    code, _, err = ctxsim("evaluate", *words)
    assert code == 2 and message in err and err.count("\n") == 1


def test_one_document_is_too_few(ctxsim: Run, tmp_path: Path) -> None:
    (tmp_path / "texts.jsonl").write_text('{"id": 1, "text": "One is here. Two is here. Three is here."}')
    assert ctxsim("chunk", "--corpus", tmp_path / "texts.jsonl", "--held-out", 0, "--output", tmp_path / "c")[0] == 0
    with pytest.raises(UserError, match="held"):
        label_free_tasks(str(tmp_path / "c"))
