"""`ctxsim adapt`: from documents to a surrogate that can be used, and what a second run does."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from planted import PlantedCorpus

from ctxsim_hf import SentenceEncoder, adapt
from ctxsim_hf.encoder.thresholds import Thresholds
from ctxsim_hf.recipes.adapt_arguments import AdaptArguments
from ctxsim_hf.recipes.adapt_steps import plan
from ctxsim_hf.recipes.budget import SHARES
from ctxsim_hf.runtime.files import digest_file

Run = Callable[..., tuple[int, str, str]]
BIN = Path(sys.executable).parent


def test_the_steps_follow_from_the_arguments() -> None:
    steps = plan(AdaptArguments(corpus=["texts", "more"], output="out", preset="tiny", minutes=20, workers=3))
    verbs = [step.verb for step in steps]
    taught = ["train generator", "index", "weigh", "harvest-vectors", "train surrogate", "train surrogate"]
    assert verbs == ["chunk", "train-tokenizer", *taught, "evaluate", "harvest", "card", "card"]
    weighed = steps[verbs.index("weigh")].values
    assert weighed["signals"] == ["cloze=1", "words=1"] and weighed["least_words"] == 1
    assert str(steps[0]).startswith("ctxsim chunk --corpus texts more ")
    generator, start, surrogate = (step.values for step in steps if step.verb.startswith("train "))
    assert (generator["max_train_minutes"], surrogate["max_train_minutes"]) == (9, 4)
    assert start["keep"] == "start" and start["token_embeddings"] == surrogate["token_embeddings"]
    assert all(sum(shares.values()) < 1 for shares in SHARES.values())  # something is left for stages without a limit
    assert steps == plan(AdaptArguments(corpus=["texts", "more"], output="out", preset="tiny", minutes=20, workers=3))


def test_from_documents_to_a_surrogate(ctxsim: Run, tmp_path: Path) -> None:
    PlantedCorpus().write(tmp_path / "texts.jsonl")
    words = ("adapt", "--corpus", tmp_path / "texts.jsonl", "--preset", "tiny", "--minutes", 0.2)
    words = (*words, "--workers", 1, "--output", tmp_path / "out")
    code, said, progress = ctxsim(*words)
    assert code == 0, progress
    assert "surrogate-tiny" in said
    assert all(f"| {name} |" in said for name in ("surrogate", "start", "teacher", "words", "tfidf", "bm25"))
    assert said.count("\n? ") == 3 and ("Use it" in said or "no better than" in said or "Do not use it" in said)
    assert "documents" in progress  # what came of each stage
    assert f"ctxsim train generator --chunks {tmp_path / 'out/chunks'}" in progress
    encoder = SentenceEncoder.from_pretrained(tmp_path / "out/ctxsim/surrogate-tiny")
    assert encoder.similarity(["Nosidi ranusi."], ["Nosidi ranusi."])[0] == pytest.approx(1, abs=1e-5)
    results = json.loads((tmp_path / "out/ctxsim/surrogate-tiny/results.json").read_text())
    assert results
    assert "| yardstick | held_out |" in (tmp_path / "out/ctxsim/surrogate-tiny/README.md").read_text()

    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*") if path.is_file()}
    code, again, progress = ctxsim(*words)
    assert (code, again) == (0, said)
    assert progress.count("exists already") == 12
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*") if path.is_file()}
    thresholds = tmp_path / "out/ctxsim/origin-tiny/thresholds.json"
    thresholds.unlink()  # as after a kill when the index was finished, and what its scores mean was not known yet
    adapted = adapt(tmp_path / "texts.jsonl", preset="tiny", minutes=0.2, workers=1, output=tmp_path / "out")
    assert Thresholds.load(thresholds.parent) is not None
    assert f"{adapted}\n" == said and adapted.origin == tmp_path / "out/ctxsim/origin-tiny"
    assert np.array_equal(adapted.encoder().encode(["Nosidi ranusi."]), encoder.encode(["Nosidi ranusi."]))
    code, _, err = ctxsim(*words, "--minutes", 0.3)
    assert code == 2 and "was made by another run: minutes was 0.2, now 0.3. Choose another --output" in err

    PlantedCorpus(seed=1).write(tmp_path / "more.jsonl", documents=30)
    grown = (*words[:3], tmp_path / "more.jsonl", *words[3:])
    code, _, progress = ctxsim(*grown)
    assert code == 0 and "documents were added: the index gains them; vectors, surrogate" in progress, progress
    assert progress.count("exists already") == 6  # chunks, tokenizer, generator, index, weights, start
    origin, vectors, pairs, surrogate = (
        json.loads((tmp_path / "out" / name / "stage.json").read_text())
        for name in ("ctxsim/origin-tiny", "vectors", "pairs", "ctxsim/surrogate-tiny")
    )
    assert origin["counts"]["segments"] == 2
    for made in (vectors, pairs):
        assert made["inputs"]["origin"]["xxh3_128"] == digest_file(tmp_path / "out/ctxsim/origin-tiny/stage.json")
    assert surrogate["inputs"]["data"]["xxh3_128"] == digest_file(tmp_path / "out/vectors/stage.json")
    code, _, progress = ctxsim(*grown)
    assert code == 0 and progress.count("exists already") == 12
    code, _, err = ctxsim(*words)
    assert code == 2 and "was made by another run: corpus was" in err


def test_few_documents(ctxsim: Run, tmp_path: Path) -> None:
    """Where there are fewer sentences than asked for, all are learned from; what cannot be judged at the end is
    refused at the beginning."""
    PlantedCorpus().write(tmp_path / "texts.jsonl", documents=100)
    words = ("adapt", "--corpus", tmp_path / "texts.jsonl", "--preset", "tiny", "--minutes", 0.5, "--workers", 1)
    code, _, err = ctxsim(*words, "--held-out", 0.001, "--output", tmp_path / "none")
    assert code == 2 and "0 of 100 documents are held out, but the evaluation needs 2" in err
    assert not (tmp_path / "none/tokenizer").exists()
    code, _, err = ctxsim(*words, "--held-out", 0.2, "--output", tmp_path / "out")
    assert code == 0, err
    record = json.loads((tmp_path / "out/vectors/stage.json").read_text())
    assert 100 <= sum(record["counts"]["sentences"].values()) < record["arguments"]["sentences"]


def test_a_start_that_is_better_and_a_system_to_compare_with(
    ctxsim: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    PlantedCorpus().write(tmp_path / "texts.jsonl", documents=200)
    words = ("adapt", "--corpus", tmp_path / "texts.jsonl", "--preset", "tiny", "--minutes", 0.1, "--workers", 1)
    monkeypatch.setattr("ctxsim_hf.recipes.adapt.loses", lambda results, other: True)
    code, said, err = ctxsim(*words, "--held-out", 0.2, "--compare", "letters", "--output", tmp_path / "out")
    assert code == 0, err
    assert "| letters |" in said and "| start | +0.0 |" in said
    start, left = (tmp_path / "out" / name / "model.safetensors" for name in ("start", "ctxsim/surrogate-tiny"))
    assert start.read_bytes() == left.read_bytes()


@pytest.mark.slow
def test_killed_five_times(tmp_path: Path) -> None:
    """At moments spread over the time of a run that is left alone: it finishes, and what was finished stays."""
    PlantedCorpus().write(tmp_path / "texts.jsonl")

    def start(output: str) -> subprocess.Popen[bytes]:
        words = ["--corpus", tmp_path / "texts.jsonl", "--preset", "tiny", "--minutes", 0.5, "--workers", 1]
        command = [BIN / "ctxsim", "adapt", *words, "--output", tmp_path / output]
        return subprocess.Popen([str(word) for word in command], start_new_session=True)

    began = time.monotonic()
    assert start("alone").wait() == 0
    took = time.monotonic() - began
    chooser, finished = random.Random(0), finished_stages(tmp_path / "out")
    for _ in range(5):
        run = start("out")
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.wait(chooser.uniform(0.1, 0.7) * took)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        now = finished_stages(tmp_path / "out")
        assert finished.items() <= now.items(), "a finished stage was done again"
        finished = now
    assert start("out").wait() == 0
    last = finished_stages(tmp_path / "out")
    assert finished.items() <= last.items()
    assert last.keys() == finished_stages(tmp_path / "alone").keys()


def finished_stages(folder: Path) -> dict[str, int]:
    """When each was finished."""
    found = [path for path in folder.rglob("stage.json") if ".ctxsim-partial" not in str(path)]
    return {path.relative_to(folder).as_posix(): path.stat().st_mtime_ns for path in found}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--preset", "huge"), "--preset must be one of tiny, light, small, base, large, got 'huge'"),
        (("--minutes", "0"), "--minutes must be above 0"),
    ],
)
def test_what_is_refused(ctxsim: Run, tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    code, _, err = ctxsim("adapt", "--corpus", tmp_path, "--output", tmp_path / "out", *words)
    assert code == 2 and message in err
