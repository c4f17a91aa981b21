"""`ctxsim adapt` with a language model that labels, with an encoder to start from, and with both."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from planted import PlantedCorpus
from safetensors.torch import load_file
from tiny_language_model import save_tiny_llama
from tiny_surrogate import save_tiny
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, TokenizersBackend

from ctxsim_hf import OriginSimilarity, SentenceEncoder
from ctxsim_hf.origin.chosen_weights import ChosenWeights
from ctxsim_hf.recipes import adapt, reading_speed
from ctxsim_hf.recipes.adapt_arguments import AdaptArguments
from ctxsim_hf.recipes.adapt_steps import plan
from ctxsim_hf.recipes.adapted_folder import AdaptedFolder
from ctxsim_hf.recipes.budget import BACKGROUND, Budget
from ctxsim_hf.runtime.record import read_stage

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("adapt") / "texts.jsonl"
    PlantedCorpus().write(path, documents=300)
    return path


@pytest.fixture(scope="module")
def language_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_llama(tmp_path_factory.mktemp("models") / "llama")


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of random weights that reads letters."""
    folder = tmp_path_factory.mktemp("models") / "bert"
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    letters = [chr(code) for code in range(33, 127)]
    vocabulary = [*special, *letters, *(f"##{letter}" for letter in letters)]
    tokenizer = Tokenizer(models.WordPiece({token: i for i, token in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names: dict[str, Any] = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    TokenizersBackend(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    BertModel(BertConfig(vocab_size=len(vocabulary), max_position_embeddings=128, **sizes)).save_pretrained(folder)
    return folder


def arguments(**values: Any) -> AdaptArguments:
    return AdaptArguments(corpus=["texts"], output="out", minutes=20, workers=1, **values)


def test_the_steps_with_a_language_model() -> None:
    steps = {step.verb: step.values for step in plan(arguments(context_model="some/lm"), speed=10)}
    taught = ["index", "weigh", "harvest-vectors", "train surrogate", "evaluate", "harvest"]
    assert list(steps) == ["chunk", "train-tokenizer", *taught, "card"]
    assert steps["index"]["context_model"] == ["some/lm"] and not steps["index"].get("generator")
    assert not steps["weigh"].keys() & {"signals", "least_words"}  # all that there are
    assert steps["harvest"]["mode"] == "group"
    assert steps["train surrogate"]["token_embeddings"] == "some/lm" and steps["train surrogate"]["kind"] == "static"
    assert steps["train-tokenizer"]["vocab_size"] == 3360  # 0.14 of 20 minutes, two words for a sentence
    assert steps["harvest-vectors"]["sentences"] == 5040  # 0.42 of 20 minutes
    # A language model is asked for the weights, and is too slow for the last table, whose systems are all fast.
    assert steps["weigh"]["pairs"] == 120 and steps["evaluate"]["limit"] == 1000  # 0.06 of 20 minutes, six sentences
    assert not any("origin:" in system for system in steps["evaluate"]["systems"])
    slower = {step.verb: step.values for step in plan(arguments(context_model="some/lm"), speed=2)}
    assert slower["harvest"]["pairs"] == pytest.approx(steps["harvest"]["pairs"] / 5, abs=1)
    # A group of 64 sentences has 1651 pairs, and 0.03 of 20 minutes are 360 sentences at this speed.
    assert steps["harvest"]["pairs"] == pytest.approx(360 * 1651 / 64, rel=0.01)


def test_the_steps_with_an_encoder() -> None:
    steps = {step.verb: step.values for step in plan(arguments(start="some/encoder"))}
    assert steps["index"]["generator"] == ["out/generator"] and steps["index"]["encoder"] == "some/encoder"
    # The teacher does not ask the generator, which only explains, so the minutes go to what is learned from.
    assert steps["train generator"]["max_train_minutes"] == 1 and steps["train surrogate"]["max_train_minutes"] == 10
    assert steps["weigh"]["signals"] == ["words=0", "encoder=1"]  # a generator would flatter the yardstick
    assert steps["train surrogate"]["init"] == "some/encoder"
    assert not steps["train surrogate"].keys() & {"tokenizer", "preset", "token_embeddings", "kind"}
    assert any(system.startswith("start=surrogate:") for system in steps["evaluate"]["systems"])
    both = plan(arguments(start="some/encoder", context_model="some/lm"), speed=10)
    assert [step.verb for step in both][:3] == ["chunk", "index", "weigh"]  # each model has its own tokenizer
    assert "signals" not in both[2].values


def test_how_much_an_encoder_reads_follows_from_the_minutes() -> None:
    assert [Budget(minutes, None, has_start=True).vectors for minutes in (0.1, 5, 300)] == [500, 12_000, 40_000]


def test_a_background_has_bounds() -> None:
    assert [Budget(30, speed).background for speed in (0.001, 1e6)] == list(BACKGROUND)


@pytest.fixture
def measured_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_speed, "MEASURED_SECONDS", 0.2)


@pytest.mark.usefixtures("measured_quickly")
def test_labelled_by_a_language_model(ctxsim: Run, texts: Path, language_model: Path, tmp_path: Path) -> None:
    words = ("adapt", "--corpus", texts, "--preset", "tiny", "--minutes", 0.1, "--workers", 1, "--held-out", 0.05)
    words = (*words, "--context-model", language_model, "--output", tmp_path / "out")
    code, said, err = ctxsim(*words)
    assert code == 0, err
    assert not (tmp_path / "out/generator").exists()
    origin = OriginSimilarity.from_pretrained(tmp_path / "out/ctxsim/origin-tiny")
    chosen = ChosenWeights.load(tmp_path / "out/ctxsim/origin-tiny")
    assert chosen is not None and origin.settings.signals == chosen.signals
    harvested = read_stage(tmp_path / "out/pairs")
    assert harvested["inputs"]["settings"]["signals"] == chosen.signals
    speed = json.loads((tmp_path / "out/speed.json").read_text())["sentences_per_second"]
    assert harvested["arguments"]["pairs"] == Budget(0.1, speed).pairs
    # The speed is not measured again: what is recorded is what the steps follow from.
    code, again, err = ctxsim(*words)
    assert (code, again) == (0, said) and err.count("exists already") == 12
    assert json.loads((tmp_path / "out/speed.json").read_text())["sentences_per_second"] == speed
    code, _, err = ctxsim(*(word for word in words if word not in ("--context-model", language_model)))
    assert code == 2 and f"context_model was {language_model}, now None. Choose another --output" in err
    code, _, err = ctxsim("ablate", "pairs", "--adapted", tmp_path / "out", "--output", tmp_path / "ablations")
    assert code == 2 and f"was made with --context-model {language_model}" in err
    assert AdaptedFolder.find(str(tmp_path / "out")).context_model == str(language_model)  # as `ctxsim app` opens it


@pytest.mark.usefixtures("measured_quickly")
def test_started_from_an_encoder(ctxsim: Run, texts: Path, language_model: Path, bert: Path, tmp_path: Path) -> None:
    words = ("adapt", "--corpus", texts, "--preset", "tiny", "--minutes", 0.1, "--workers", 1, "--held-out", 0.05)
    words = (*words, "--context-model", language_model, "--start", bert, "--output", tmp_path / "out")
    code, _, err = ctxsim(*words)
    assert code == 0, err
    surrogate = tmp_path / "out/ctxsim/surrogate-tiny"
    assert json.loads((surrogate / "config.json").read_text())["model_type"] == "bert"
    assert json.loads((surrogate / "tokenizer.json").read_text())["model"]["type"] == "WordPiece"
    assert SentenceEncoder.from_pretrained(surrogate).encode(["Nosidi ranusi."]).shape == (1, 16)
    assert (tmp_path / "out/ctxsim/origin-tiny/signals/encoder/config.json").exists()
    chosen = ChosenWeights.load(tmp_path / "out/ctxsim/origin-tiny")
    assert chosen is not None and set(chosen.alone) == {"cloze", "words", "encoder"}


def test_started_from_an_encoder_without_a_language_model(
    ctxsim: Run, texts: Path, bert: Path, tmp_path: Path
) -> None:
    words = ("adapt", "--corpus", texts, "--preset", "tiny", "--minutes", 0.1, "--workers", 1, "--held-out", 0.05)
    code, _, err = ctxsim(*words, "--start", bert, "--output", tmp_path / "out")
    assert code == 0, err
    origin = OriginSimilarity.from_pretrained(tmp_path / "out/ctxsim/origin-tiny")
    assert set(origin.settings.active_signals) <= {"words", "encoder"}
    # No score rests on the generator, but it still tells which contexts the sentences fit.
    assert any(origin.explain("Nosidi ranusi.", "Ranusi nosidi.").groups.values())


@pytest.mark.usefixtures("measured_quickly")
def test_a_start_that_is_better_is_what_it_leaves(
    ctxsim: Run, texts: Path, language_model: Path, bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("adapt", "--corpus", texts, "--preset", "tiny", "--minutes", 0.1, "--workers", 1, "--held-out", 0.05)
    words = (*words, "--context-model", language_model, "--start", bert, "--language", "ro")
    with monkeypatch.context() as patch:
        patch.setattr(adapt, "loses", lambda results, other: True)
        code, said, err = ctxsim(*words, "--output", tmp_path / "out")
    assert code == 0, err
    surrogate = tmp_path / "out/ctxsim/surrogate-tiny"
    given, left = (load_file(folder / "model.safetensors") for folder in (bert, surrogate))
    assert all(torch.equal(left[name], given[name]) for name in left)
    assert read_stage(surrogate)["arguments"]["keep"] == "start"
    assert "language: ro\n" in (surrogate / "README.md").read_text()
    assert ctxsim(*words, "--output", tmp_path / "out")[:2] == (0, said)


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--context-model", "--context-model must be a causal language model, "),
        ("--start", "expected a sentence encoder or its id on the Hub, but "),
    ],
)
def test_what_is_refused_before_anything_is_done(
    ctxsim: Run, texts: Path, tmp_path: Path, flag: str, message: str
) -> None:
    model = save_tiny(tmp_path / "surrogate") if flag == "--context-model" else "no/such-encoder"
    if flag == "--context-model":
        config = json.loads((tmp_path / "surrogate/config.json").read_text())
        (tmp_path / "surrogate/config.json").write_text(json.dumps(config | {"model_type": "bart"}))
    code, _, err = ctxsim("adapt", "--corpus", texts, flag, model, "--output", tmp_path / "out")
    assert code == 2 and message in err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_killed_after_each_step(texts: Path, language_model: Path, tmp_path: Path) -> None:
    words = ["adapt", "--corpus", texts, "--preset", "tiny", "--minutes", 0.2, "--workers", 1, "--held-out", 0.05]
    words += ["--context-model", language_model, "--output", tmp_path / "out"]
    command = [str(word) for word in [Path(sys.executable).parent / "ctxsim", *words]]
    speed = None
    for leaves in ("speed.json", "tokenizer", "ctxsim/origin-tiny", "pairs", "ctxsim/surrogate-tiny"):
        run = subprocess.Popen(command, start_new_session=True)
        while not (tmp_path / "out" / leaves).exists() and run.poll() is None:
            time.sleep(0.05)
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        now = (tmp_path / "out/speed.json").read_text()
        assert speed in (None, now)
        speed = now
    assert subprocess.run(command, check=False).returncode == 0
    assert (tmp_path / "out/ctxsim/surrogate-tiny/README.md").exists()
    shutil.rmtree(tmp_path / "out")
