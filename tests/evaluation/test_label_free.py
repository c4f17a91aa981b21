"""Questions from held-out documents alone, a planted similarity on them, and thresholds saved with a model."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from tiny_surrogate import save_tiny

from ctxsim_hf import SentenceEncoder, read_chunks
from ctxsim_hf.encoder.thresholds import Thresholds
from ctxsim_hf.evaluation.examples import Triplets
from ctxsim_hf.evaluation.label_free import label_free_tasks
from ctxsim_hf.evaluation.results import judge
from ctxsim_hf.evaluation.systems import PairScorer
from ctxsim_hf.evaluation.yardstick import Question, Yardstick, yardstick
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
    *_, adjacent, document = label_free_tasks(str(chunks), 200)
    assert isinstance(adjacent, Triplets) and isinstance(document, Triplets)
    for task, distances in ((adjacent, {1}), (document, set(range(2, 11)))):
        assert len(task) == 200 and {*task.anchors, *task.positives, *task.negatives} <= held_out
        found = set()
        for anchor, positive, negative in zip(task.anchors, task.positives, task.negatives, strict=True):
            (one, place), (same, near), (other, _) = map(parse, (anchor, positive, negative))
            assert one == same != other
            found.add(near - place)
        assert found == distances
    assert label_free_tasks(str(chunks), 200)[-2:] == [adjacent, document]


def test_the_yardstick_holds_the_topic_fixed(chunks: Path) -> None:
    measured, passage, lookalike = label_free_tasks(str(chunks), 60)[:3]
    assert isinstance(measured, Yardstick) and list(measured.questions) == [passage, lookalike]
    assert isinstance(passage, Question) and isinstance(lookalike, Question) and len(passage) == len(lookalike) == 120
    for question in (passage, lookalike):
        for one, other, label in zip(*question.pairs(), question.scores, strict=True):
            (document, place), (second, later) = parse(one), parse(other)
            if question is passage:
                assert document == second and (later == place + 1 if label else later >= place + 6)
            else:
                assert (document == second and 2 <= later - place <= 10) if label else document != second
    fewer = label_free_tasks(str(chunks), 30)[1]  # begins with the same
    assert isinstance(fewer, Question) and fewer.sentences1[:30] == passage.sentences1[:30]


def test_pairs_are_held_against_pairs() -> None:
    """A similarity that is right for each sentence, but on another scale for each, is right for few pairs of pairs."""
    question = Question("passage", "held_out", ["a", "b"] * 2, ["a1", "b1", "a2", "b2"], np.array([1.0, 1, 0, 0]))
    whole = Yardstick("yardstick", "held_out", [question, question])
    scores = np.array([0.2, 0.9, 0.1, 0.8])  # b is near to everything
    assert question.judge(scores)["auc"].value == 0.75
    assert whole.judge(np.concatenate([scores, [1, 1, 0, 0]]))["auc"].value == 0.875


def test_documents_too_short_for_passages() -> None:
    documents = [[f"Short document {number} has the sentence {place}." for place in range(4)] for number in range(40)]
    measured = yardstick(documents, "held_out", 50)
    assert [question.task for question in measured.questions] == ["lookalike"] and "too short" in measured.remarks[0]
    with pytest.raises(UserError, match="hold out more documents"):
        yardstick(documents[:3], "held_out", 50)


def test_planted_and_random_systems(chunks: Path) -> None:
    tasks = label_free_tasks(str(chunks), 400)

    def same_document(first: Sequence[str], second: Sequence[str]) -> np.ndarray:
        return np.array([parse(a)[0] == parse(b)[0] for a, b in zip(first, second, strict=True)])

    knows = PairScorer(same_document)
    chance = PairScorer(lambda first, second: np.random.default_rng(0).normal(size=len(first)))
    constant = PairScorer(lambda first, second: np.zeros(len(first)))
    found = {task.task: task.main.value for task in judge("knows", [knows], tasks).tasks}
    assert found == {"yardstick": 0.75, "passage": 0.5, "lookalike": 1, "adjacent": 1, "document": 1}
    assert all(task.main.low < 0.5 < task.main.high for task in judge("chance", [chance], tasks).tasks)
    assert {task.main.value for task in judge("constant", [constant], tasks).tasks} == {0.5}


def test_the_command_and_the_thresholds(ctxsim: Run, chunks: Path, tmp_path: Path) -> None:
    folder = save_tiny(tmp_path / "surrogate")
    flags = ("--label-free", "--chunks", chunks, "--limit", 100)
    code, out, err = ctxsim("evaluate", f"surrogate:{folder}", "tfidf", *flags, "--output", tmp_path / "out")
    assert code == 0, err
    rows = json.loads((tmp_path / "out/results.json").read_text())["results"]
    tasks = ["yardstick", "passage", "lookalike", "adjacent", "document"]
    assert [(row["task"], row["split"]) for row in rows[:5]] == [(task, "held_out") for task in tasks]
    assert [row["pairs"] for row in rows[3:5]] == [100, 100]
    assert "paper:" not in out and Thresholds.load(folder) is None
    assert ctxsim("evaluate", f"surrogate:{folder}", *flags, "--save-thresholds")[0] == 0
    thresholds = Thresholds.load(folder)
    adjacent = label_free_tasks(str(chunks), 100)[-2]
    assert isinstance(adjacent, Triplets)
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
