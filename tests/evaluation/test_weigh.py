"""Weights of signals chosen by the yardstick: a planted signal wins, and what was chosen is what an origin uses."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from planted import PlantedCorpus

from ctxsim_hf import OriginSimilarity
from ctxsim_hf.evaluation.label_free import SPLIT, held_out_documents, label_free_tasks
from ctxsim_hf.evaluation.weigh import WeighArguments, choose, expected_weights
from ctxsim_hf.evaluation.yardstick import yardstick
from ctxsim_hf.origin.chosen_weights import ChosenWeights
from ctxsim_hf.runtime.errors import UserError

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, planted: Path) -> Path:
    """Chunks with held-out documents, and an origin whose models are of another corpus."""
    from ctxsim_hf.cli import main

    folder = tmp_path_factory.mktemp("weigh")
    PlantedCorpus().write(folder / "texts.jsonl", documents=200)
    words = ["chunk", "--corpus", folder / "texts.jsonl", "--held-out", 0.3, "--output", folder / "chunks"]
    assert main([str(word) for word in words]) == 0
    shutil.copytree(planted / "origin", folder / "origin")
    return folder


def test_what_is_chosen_is_what_counts(ctxsim: Run, folder: Path) -> None:
    code, out, err = ctxsim("weigh", "--origin", folder / "origin", "--chunks", folder / "chunks", "--pairs", 100)
    assert code == 0, err
    chosen = ChosenWeights.load(folder / "origin")
    assert chosen is not None and max(chosen.signals.values()) == 1 and set(chosen.alone) == {"cloze", "words"}
    assert chosen.yardstick >= max(chosen.alone.values())
    assert "chosen: " in out and f"{100 * chosen.yardstick:.1f}" in out
    origin = OriginSimilarity.from_pretrained(folder / "origin")
    assert origin.settings.signals == chosen.signals
    overridden = OriginSimilarity.from_pretrained(folder / "origin", signals={"words": 1})
    assert overridden.settings.signals == {"words": 1} and overridden.signature != origin.signature


class Planted:
    """A signal that knows the labels of the questions, up to noise, and makes up those of other pairs."""

    def __init__(self, labels: np.ndarray, noise: float) -> None:
        self.labels, self.noise = labels, noise

    def similarity(self, first: Sequence[str], second: Sequence[str]) -> np.ndarray:
        rng = np.random.default_rng(0)
        labels = self.labels if len(first) == len(self.labels) else rng.integers(0, 2, len(first))
        return np.asarray(labels + self.noise * rng.normal(size=len(first)))


def test_what_is_expected_gives_way_to_what_is_seen(folder: Path) -> None:
    questions = yardstick(held_out_documents(str(folder / "chunks")), SPLIT, 100)
    labels = np.concatenate([question.scores for question in questions.questions])
    origin = OriginSimilarity.from_pretrained(folder / "origin", signals={"cloze": 1, "words": 1})
    origin.signals = {"knows": Planted(labels, 0.01), "guesses": Planted(np.zeros(len(labels)), 1.0)}
    chosen = choose(origin, questions, {"knows": 0, "guesses": 1})
    assert chosen.signals["knows"] == 1 and chosen.signals.get("guesses", 0) < 1 and chosen.alone["knows"] == 1
    assert chosen.yardstick > 0.99
    assert abs(chosen.alone["guesses"] - 0.5) < 0.1
    origin.signals = {"knows": origin.signals["knows"], "words": origin.signals["guesses"]}
    with_words = choose(origin, questions, {"knows": 1, "words": 0}, least_words=1)
    assert with_words.signals["words"] == 1 and with_words.alone["knows"] == 1
    same = Planted(labels, 2.0)
    origin.signals = {"one": same, "other": same}
    assert choose(origin, questions, {"one": 0.35, "other": 1}).signals == {"one": 0.35, "other": 1}


def test_never_worse_than_the_best_single_signal(folder: Path) -> None:
    """Of two mixtures that the questions cannot tell apart, the expected one is not taken if a signal alone is ahead
    of it, unless words must keep their weight."""
    questions = yardstick(held_out_documents(str(folder / "chunks")), SPLIT, 25)
    labels = np.concatenate([question.scores for question in questions.questions])
    origin = OriginSimilarity.from_pretrained(folder / "origin", signals={"cloze": 1, "words": 1})
    flawed = np.where(np.arange(len(labels)) % 50 == 0, 1 - labels, labels)
    origin.signals = {"cloze": Planted(labels, 0.5), "words": Planted(flawed, 0.5)}
    expected = {"cloze": 0.1, "words": 1}
    chosen = choose(origin, questions, expected)
    assert chosen.alone["cloze"] > chosen.alone["words"]
    assert chosen.yardstick >= chosen.alone["cloze"]
    with_words = choose(origin, questions, expected, least_words=1)
    assert with_words.signals["words"] == 1
    assert chosen.alone["words"] <= with_words.yardstick < chosen.alone["cloze"]


def test_other_questions_than_those_of_the_verdict(folder: Path) -> None:
    chunks = str(folder / "chunks")
    drawn = (yardstick(held_out_documents(chunks), SPLIT, 100, WeighArguments.seed), label_free_tasks(chunks, 100)[0])
    chosen, judged = (set(zip(*questions.pairs(), strict=True)) for questions in drawn)
    assert len(chosen & judged) < len(chosen) / 2


def test_what_is_expected_depends_on_what_there_is() -> None:
    assert expected_weights(["cloze", "words", "encoder"]) == {"cloze": 0.25, "words": 0, "encoder": 1}
    assert expected_weights(["words", "encoder"]) == {"words": 0, "encoder": 1}
    assert expected_weights(["cloze", "words"]) == {"cloze": 1, "words": 0.2}
    assert expected_weights(["words"]) == {"words": 1}


def test_what_others_read_is_not_changed(ctxsim: Run, folder: Path) -> None:
    """An origin on the Hub would be one in the cache."""
    code, _, err = ctxsim("weigh", "--origin", "owner/name", "--chunks", folder / "chunks")
    assert code == 2 and "expected a folder made by ctxsim index, to write weights.json into; 'owner/name'" in err


def test_least_words_without_words(ctxsim: Run, folder: Path) -> None:
    asked = ("weigh", "--origin", folder / "origin", "--chunks", folder / "chunks")
    code, _, err = ctxsim(*asked, "--signals", "cloze=1", "--least-words", 1)
    assert code == 2 and "--least-words needs the signal words, got cloze" in err


def test_damaged_weights_are_refused(folder: Path, tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    shutil.copytree(folder / "origin", origin)
    ChosenWeights({"words": 1.0}, 0.6, {"words": 0.6}, 100).save(origin)
    about = json.loads((origin / "weights.json").read_text())
    (origin / "weights.json").write_text(json.dumps(about | {"signals": {"words": 2.0}}))
    with pytest.raises(UserError, match="choose again with ctxsim weigh"):
        OriginSimilarity.from_pretrained(origin)
