"""The door for signals: one from outside the package is weighed wherever an origin is, and so is an encoder."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import evaluate
import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from planted import PlantedCorpus
from safetensors.torch import load_file
from small_harvest import harvest_words
from tiny_surrogate import save_tiny
from word_count_signal import NAME, WordCount

from ctxsim_hf import SentenceEncoder
from ctxsim_hf.encoder.find_surrogate import fingerprint
from ctxsim_hf.origin import signals
from ctxsim_hf.origin.settings import OriginSettings
from ctxsim_hf.origin.signals import describe_encoder, register_signal
from ctxsim_hf.origin.similarity import OriginSimilarity
from ctxsim_hf.runtime.errors import UserError

Run = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).parents[2]
SMALL = {"num_contexts": 10, "background_size": 40, "screen_chunks": 100}
SIGNALS = {"contexts": 1.0, NAME: 0.5}
FLAGS = ("--signals", "contexts=1", f"{NAME}=0.5")
FIRST = [probe.sentence for probe in PlantedCorpus().probes(4)]
SECOND = [" ".join(sentence.split()[: 2 + place]) for place, sentence in enumerate(FIRST)]


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    register_signal(NAME, WordCount)
    yield
    del signals._factories[NAME]


@pytest.fixture
def origin(planted: Path) -> OriginSimilarity:
    return OriginSimilarity.from_pretrained(planted / "origin", signals=SIGNALS, **SMALL)


@pytest.fixture
def expected(planted: Path) -> Callable[..., np.ndarray]:
    """The mean of the two signals by hand."""
    alone = OriginSimilarity.from_pretrained(planted / "origin", **SMALL)
    counts = WordCount(Path())
    sentences = alone.background
    places = np.stack(np.triu_indices(len(sentences), 1), axis=1)
    by_counts = counts.similarity(*([sentences[place] for place in side] for side in places.T))
    deviations = alone.label(sentences, places, "group")[0].std(), max(by_counts.std(), 0.01)
    weights = np.array([1 / deviations[0], 0.5 / deviations[1]])

    def mean(first: list[str], second: list[str]) -> np.ndarray:
        values = np.stack([alone.similarity(first, second), counts.similarity(first, second)])
        return weights @ values / weights.sum()

    return mean


def test_similarity_and_explanation(origin: OriginSimilarity, expected: Callable[..., np.ndarray]) -> None:
    assert len(origin.background) == 40, "all of which are paired"
    np.testing.assert_allclose(origin.similarity(FIRST, SECOND), expected(FIRST, SECOND), atol=1e-5)
    shown = origin.explain(FIRST[0], SECOND[0])
    assert shown.signals[NAME] == pytest.approx(1 / 3) and sum(shown.shares.values()) == pytest.approx(1)
    assert f"{NAME} 0.333 x {shown.shares[NAME]:.0%}" in str(shown)
    assert f"|signals:contexts=1+{NAME}=0.5|" in origin.signature


def test_command(ctxsim: Run, planted: Path, origin: OriginSimilarity) -> None:
    flags = ("--num-contexts", 10, "--background-size", 40, "--screen-chunks", 100)
    code, out, err = ctxsim("similarity", "--origin", planted / "origin", *flags, FIRST[0], SECOND[0], *FLAGS)
    assert code == 0, err
    assert float(out) == pytest.approx(origin.similarity(FIRST[:1], SECOND[:1])[0], abs=1e-4)


@pytest.mark.parametrize("mode", ["pair", "group"])
def test_harvest(planted: Path, origin: OriginSimilarity, ctxsim: Run, tmp_path: Path, mode: str) -> None:
    code, _, err = ctxsim(*harvest_words(planted, tmp_path / "pairs", "--mode", mode, *FLAGS))
    assert code == 0, err
    assert json.loads((tmp_path / "pairs/stage.json").read_text())["inputs"]["settings"]["signals"] == SIGNALS
    rows = pq.read_table(sorted((tmp_path / "pairs/data").glob("train-*.parquet"))).slice(0, 20).to_pydict()
    if mode == "pair":
        found = origin.similarity(rows["sentence1"], rows["sentence2"])
        np.testing.assert_allclose(rows["score"], found, atol=1e-4)
    sentences = origin.background[:6]
    pairs = np.array([[0, 1], [2, 5]])
    scores, spreads = origin.label(sentences, pairs, mode)
    alone = OriginSimilarity.from_pretrained(planted / "origin", **SMALL)
    by_contexts, alone_spreads = alone.label(sentences, pairs, mode)
    by_counts = WordCount(Path()).similarity(*([sentences[place] for place in side] for side in pairs.T))
    share = origin.shares["contexts"]
    np.testing.assert_allclose(scores, share * by_contexts + (1 - share) * by_counts, atol=1e-6)
    np.testing.assert_allclose(spreads, share * alone_spreads, atol=1e-6)


def test_metric(planted: Path, origin: OriginSimilarity) -> None:
    metric = evaluate.load(str(ROOT / "metrics/origin"))
    result = metric.compute(
        predictions=FIRST, references=SECOND, origin=str(planted / "origin"), signals=SIGNALS, **SMALL
    )
    np.testing.assert_allclose(result["scores"], origin.similarity(FIRST, SECOND), atol=1e-5)
    assert result["signature"] == origin.signature


def test_evaluation(ctxsim: Run, planted: Path, origin: OriginSimilarity, tmp_path: Path) -> None:
    rows = [
        {"sentence1": first, "sentence2": second, "score": place}
        for place, (first, second) in enumerate(zip(FIRST, SECOND, strict=True))
    ]
    (tmp_path / "mteb/stsbenchmark-sts").mkdir(parents=True)
    (tmp_path / "mteb/stsbenchmark-sts/test.jsonl").write_text("\n".join(map(json.dumps, rows)))
    settings = ("--num-contexts", 10, "--background-size", 40, "--screen-chunks", 100, *FLAGS)
    data = ("--tasks", "stsb", "--data-root", tmp_path, "--output", tmp_path / "evaluation")
    code, _, err = ctxsim("evaluate", f"origin:{planted / 'origin'}", *data, *settings)
    assert code == 0, err
    (row,) = json.loads((tmp_path / "evaluation/results.json").read_text())["results"]
    found = origin.similarity(FIRST, SECOND)
    assert row["pearson"]["value"] == pytest.approx(np.corrcoef(found, np.arange(4))[0, 1], abs=1e-4)
    assert f"|signals:contexts=1+{NAME}=0.5|" in (tmp_path / "evaluation/results.json").read_text()


def test_refused(ctxsim: Run, planted: Path) -> None:
    words = ("similarity", "--origin", planted / "origin", "a b", "a c", "--signals")
    for signal, message in (
        ("magic=1", f"unknown signal 'magic'; expected one of contexts, cloze, words, encoder, {NAME}"),
        ("encoder=1", "this origin has no encoder; index again with --encoder, or leave the signal `encoder` out"),
        ("words", "expected signals as NAME=WEIGHT, such as words=0.5, got 'words'"),
        ("words=-1", "signals must be a dictionary in which each value is at least 0, got {'words': -1.0}"),
        ("words=0", "every signal has the weight 0; at least one must count"),
    ):
        code, _, err = ctxsim(*words, signal)
        assert code == 2 and message in err and err.count("\n") == 1, err
    code, _, err = ctxsim(*words, "words=1", "--lexical-weight", 1)
    assert code == 2 and "--lexical-weight is short for --signals contexts=1 words=W; leave one of them out" in err
    for name in ("contexts", "two words"):
        with pytest.raises(UserError, match=f"a signal needs a name of its own, got '{name}'"):
            register_signal(name, WordCount)


def test_encoder(ctxsim: Run, planted: Path, tmp_path: Path) -> None:
    """A surrogate is copied into the origin, which then needs nothing that lies elsewhere."""
    surrogate = save_tiny(tmp_path / "surrogate")
    words: list[Any] = ["index", "--chunks", planted / "chunks", "--generator", planted / "generator"]
    code, _, err = ctxsim(*words, "--encoder", surrogate, "--output", tmp_path / "origin")
    assert code == 0, err
    by_encoder = SentenceEncoder.from_pretrained(surrogate).similarity(FIRST, SECOND)
    shutil.rmtree(surrogate)
    default, alone, both = (
        OriginSimilarity.from_pretrained(tmp_path / "origin", signals=weights, **SMALL)
        for weights in (None, {"encoder": 1}, {"contexts": 1, "encoder": 2})
    )
    assert default.settings.signals == OriginSettings().signals, "it counts once it is asked for"
    np.testing.assert_allclose(alone.similarity(FIRST, SECOND), by_encoder, atol=1e-5)
    share = both.shares["encoder"]
    mean = share * by_encoder + (1 - share) * default.similarity(FIRST, SECOND)
    np.testing.assert_allclose(both.similarity(FIRST, SECOND), mean, atol=1e-5)
    assert 0 < share < 1 and "|signals:contexts=1+encoder=2|" in both.signature
    same = both.similarity(FIRST, FIRST)
    np.testing.assert_allclose(same, 1, atol=1e-5)
    (tmp_path / "origin/signals/encoder/model.safetensors").write_bytes(b"")
    with pytest.raises(UserError, match=r"model.safetensors' is damaged"):
        OriginSimilarity.from_pretrained(tmp_path / "origin")


def test_an_encoder_of_which_not_all_is_copied(ctxsim: Run, planted: Path, tmp_path: Path) -> None:
    surrogate = save_tiny(tmp_path / "surrogate")
    before = describe_encoder(surrogate)
    torch.save(load_file(surrogate / "model.safetensors"), surrogate / "pytorch_model.bin")
    assert describe_encoder(surrogate) == before, "it is not copied"
    (surrogate / "model.safetensors").unlink()
    words: list[Any] = ["index", "--chunks", planted / "chunks", "--generator", planted / "generator"]
    code, _, err = ctxsim(*words, "--encoder", surrogate, "--output", tmp_path / "origin")
    assert code == 2 and err.count("\n") == 1, err
    assert "with weights in safetensors, but it needs other files, found pytorch_model.bin; open it with" in err
    before_a_change = fingerprint(surrogate)
    (surrogate / "pytorch_model.bin").write_bytes(b"other weights")
    assert fingerprint(surrogate) != before_a_change


def test_an_encoder_is_described_by_all_that_is_copied(tmp_path: Path) -> None:
    surrogate = save_tiny(tmp_path / "surrogate")
    described = [describe_encoder(surrogate)]
    (surrogate / "results.json").write_text("{}")  # what `ctxsim evaluate` adds changes no vector
    assert describe_encoder(surrogate) == described[0]
    (surrogate / "2_Dense").mkdir()
    for content in (b"some", b"other"):
        (surrogate / "2_Dense/model.safetensors").write_bytes(content)
        described.append(describe_encoder(surrogate))
    assert len({each["xxh3_128"] for each in described}) == 3


def test_what_is_no_encoder(ctxsim: Run, planted: Path, tmp_path: Path) -> None:
    words: list[Any] = ["index", "--chunks", planted / "chunks", "--generator", planted / "generator"]
    code, _, err = ctxsim(*words, "--encoder", planted / "tokenizer", "--output", tmp_path / "origin")
    assert code == 2 and "expected a sentence encoder in" in err and err.count("\n") == 1
    assert not (tmp_path / "origin").exists()
