"""`ctxsim train context-model`: a language model learns the documents, in full or by LoRA, and stays a plain one."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_language_model import save_tiny_llama
from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer, BertConfig

import ctxsim_hf
from ctxsim_hf.context_models.causal.right_gain import RightGain
from ctxsim_hf.context_models.causal.scoring import CausalContextModel
from ctxsim_hf.context_models.causal.settings import CausalSettings
from ctxsim_hf.context_models.causal.training_rows import save_tokenizer_after_space, stack_rows, token_ranges
from ctxsim_hf.context_models.contexts import Contexts
from ctxsim_hf.context_models.registry import load_context_model
from ctxsim_hf.text.chunks import Chunk, read_chunks
from ctxsim_hf.text.tokenized import TokenizedChunks, tokenize_chunks

Run = Callable[..., tuple[int, str, str]]
BIN = Path(sys.executable).parent
TWO_PROCESSES = Path(__file__).parents[2] / "accelerate_configs/two_cpu_processes.yaml"
ON_CPUS = os.environ | {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
LORA = ("--lora-rank", 8, "--learning-rate", 2e-2)
KINDS = {"full": ("--learning-rate", 1e-2), "LoRA": LORA}


@pytest.fixture(scope="module")
def start(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model whose tokenizer knows the words of the corpus, with settings of its own."""
    texts = [" ".join(json.loads(line)["text"].split()) for line in (corpus / "texts.jsonl").open()]
    folder = tmp_path_factory.mktemp("start") / "lm"
    save_tiny_llama(folder, text=texts, vocab_size=900, initializer_range=0.08)
    CausalSettings(width=2, max_sentence_tokens=12).save(folder)
    return folder


def words(corpus: Path, start: Path, output: Path, *flags: object) -> list[str]:
    fixed = ["train", "context-model", "--init", start, "--chunks", corpus / "chunks", "--output", output]
    every = ["--tokens-per-batch", 1000, "--log-every", 2, "--checkpoint-every", 6, "--eval-contexts", 150]
    return [str(word) for word in [*fixed, *every, *flags]]


def losses(folder: Path) -> list[float]:
    return [row["train/loss"] for row in json.loads((folder / "history.json").read_text()) if "train/loss" in row]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    if request.param == "LoRA":
        pytest.importorskip("peft", reason="needs the extra lm")
    return str(request.param)


def test_it_learns_to_use_what_stands_before(
    ctxsim: Run, corpus: Path, start: Path, held_out: TokenizedChunks, tmp_path: Path, kind: str
) -> None:
    code, out, err = ctxsim(*words(corpus, start, tmp_path / "out", "--max-steps", 60, *KINDS[kind]))
    assert code == 0, err
    counts = json.loads((tmp_path / "out/stage.json").read_text())["counts"]
    assert losses(tmp_path / "out")[-1] < losses(tmp_path / "out")[0] - 0.3
    assert counts["right_gain_before_low"] < 0 < counts["right_gain_before_high"], "it starts from random weights"
    assert counts["right_gain_low"] > max(0, counts["right_gain_before"])
    assert counts["right_perplexity"] < 0.7 * counts["right_perplexity_before"]
    assert ", before training" in out and "before low" not in out

    # A plain language model that computes the same, and a context model with the settings of the one it started from.
    plain, before = (AutoModelForCausalLM.from_pretrained(folder) for folder in (tmp_path / "out", start))
    assert plain.state_dict().keys() == before.state_dict().keys()
    changed = {name for name, tensor in plain.state_dict().items() if not tensor.equal(before.state_dict()[name])}
    assert ("model.embed_tokens.weight" in changed) == (kind == "full")
    assert any("q_proj" in name for name in changed) and any("down_proj" in name for name in changed)
    settings = CausalSettings.load(start)
    for name, value in RightGain(held_out, [1], settings, 150).evaluate(plain).items():
        assert value == pytest.approx(counts[name], rel=1e-4)
    model = load_context_model(tmp_path / "out")
    assert isinstance(model, CausalContextModel) and model.settings == settings
    assert not {path.name for path in (tmp_path / "out").iterdir()} & {"checkpoints", "adapter_config.json"}


def test_killed_and_resumed_it_ends_with_the_same_weights(
    ctxsim: Run, corpus: Path, start: Path, tmp_path: Path, kind: str
) -> None:
    flags = ("--max-steps", 30, *KINDS[kind])
    assert ctxsim(*words(corpus, start, tmp_path / "undisturbed", *flags))[0] == 0
    command = words(corpus, start, tmp_path / "out", *flags)
    with subprocess.Popen([BIN / "ctxsim", *command], stderr=subprocess.PIPE, text=True) as process:
        while not list((tmp_path / "out.ctxsim-partial/output/checkpoints").glob("step-*[0-9]")):
            assert process.poll() is None, process.communicate()
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    assert not (tmp_path / "out").exists()
    code, out, err = ctxsim(*command)
    assert code == 0 and "resuming from step" in out + err
    for name in ("model.safetensors", "metrics.json", "history.json", "stage.json", "context_model.json"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "undisturbed" / name).read_bytes(), name


@pytest.mark.slow
def test_two_processes_follow_the_loss_of_one(
    ctxsim: Run, corpus: Path, start: Path, tmp_path: Path, kind: str
) -> None:
    common = ("--max-steps", 8, "--log-every", 1, *KINDS[kind])
    one = words(corpus, start, tmp_path / "one", *common, "--gradient-accumulation-steps", 2)
    assert ctxsim(*one)[0] == 0
    two = words(corpus, start, tmp_path / "two", *common)[2:]
    launch = [
        BIN / "accelerate",
        "launch",
        "--config_file",
        TWO_PROCESSES,
        "-m",
        "ctxsim_hf.train.context_model",
        *two,
    ]
    result = subprocess.run(launch, env=ON_CPUS, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), abs=1e-4)


@pytest.fixture(scope="module")
def held_out(corpus: Path, start: Path) -> TokenizedChunks:
    folder = save_tokenizer_after_space(AutoTokenizer.from_pretrained(start))
    return tokenize_chunks(corpus / "chunks", folder, "held_out")


def test_sentences_are_tokenised_as_after_a_space(corpus: Path, start: Path, held_out: TokenizedChunks) -> None:
    tokenizer = AutoTokenizer.from_pretrained(start)
    sentences = [sentence for row in read_chunks(corpus / "chunks", "held_out") for sentence in row["sentences"]]
    assert len(sentences) == len(held_out)
    for number in range(0, len(sentences), 20):
        expected = tokenizer(f" {sentences[number]}", add_special_tokens=False)["input_ids"]
        assert held_out.tokens[slice(*held_out.sentence_starts[number : number + 2])].tolist() == expected


def test_right_sides_are_scored_as_by_the_context_model(corpus: Path, start: Path, held_out: TokenizedChunks) -> None:
    scorer = load_context_model(start)
    assert isinstance(scorer, CausalContextModel)
    scorer.model.float()
    settings = CausalSettings.load(start)
    chunk = Chunk.from_row(read_chunks(corpus / "chunks", "held_out")[0])
    gain = RightGain(held_out, [1], settings, 10)
    for position, context in list(enumerate(chunk.contexts(2), start=1))[:3]:
        prepared = scorer.prepare_contexts(Contexts.from_texts([context]))
        ((mean,),) = scorer.score("right", scorer.prepare_sentences([context.sentence]), prepared)
        left, right = held_out.neighbours(np.array([position]), 2)
        source, target = gain._tokens([*left[0][::-1], position]), gain._tokens(right[0])
        (total,) = gain._log_probs(scorer.model, [source], [target])
        assert total / len(target) == pytest.approx(mean, abs=1e-4)


def test_rows_are_stretches_of_whole_sentences() -> None:
    starts = [np.cumsum([0, 3, 4, 2, 9, 1, 1]), np.array([0, 4, 6]), np.array([0, 6])]
    chunks = TokenizedChunks(np.arange(20), *starts)
    assert token_ranges(chunks, 7).tolist() == [[0, 7], [7, 9], [9, 16], [18, 20]], "the sentence of nine is cut"
    tensors = stack_rows([np.array([5, 6]), np.array([7])], [1])
    assert {name: tensor.tolist() for name, tensor in tensors.items()} == {
        "input_ids": [[1, 5, 6], [1, 7, 0]],
        "attention_mask": [[1, 1, 1], [1, 1, 0]],
        "labels": [[1, 5, 6], [1, 7, -100]],
    }


def test_by_function(corpus: Path, start: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"tokens_per_batch": 1000, "max_steps": 2, "eval_contexts": 20}
    out = tmp_path / "out"
    counts = ctxsim_hf.train_context_model("causal", init=start, chunks=corpus / "chunks", output=out, **options)
    assert counts["steps"] == 2
    arguments = json.loads((out / "stage.json").read_text())["arguments"]
    assert arguments["learning_rate"] == 5e-5 and "init" not in arguments


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--lora-rank", 0], "--lora-rank must be at least 1, got 0"),
        (["--lora-alpha", 8], "--lora-alpha scales the update of LoRA; give a --lora-rank too"),
        (["--max-tokens", 1200], "--tokens-per-batch 1000 is less than the 1200 of --max-tokens"),
        (["--max-tokens", 600], "--max-tokens 600 is more than the 512 tokens that the model reads"),
        (["--init", "nowhere/at-all"], "expected a causal language model or its id on the Hub"),
    ],
)
def test_bad_flags(ctxsim: Run, corpus: Path, start: Path, tmp_path: Path, flags: list[object], message: str) -> None:
    code, _, err = ctxsim(*words(corpus, start, tmp_path / "out", *flags))
    assert code == 2 and message in err and err.count("\n") == 1
    assert not list(tmp_path.glob("out*")), "refused before anything is written"


def test_bad_models(ctxsim: Run, corpus: Path, start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = BertConfig(vocab_size=50, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
    AutoModel.from_config(config).save_pretrained(tmp_path / "bert")
    (tmp_path / "cut.gguf").write_bytes(b"GGUF\x03\x00")
    small = AutoModelForCausalLM.from_pretrained(start)
    small.resize_token_embeddings(300)
    small.save_pretrained(tmp_path / "small")
    AutoTokenizer.from_pretrained(start).save_pretrained(tmp_path / "small")
    AutoModelForCausalLM.from_pretrained(start).save_pretrained(tmp_path / "wide")
    AutoTokenizer.from_pretrained(start).save_pretrained(tmp_path / "wide")
    CausalSettings(width=4, terms=[]).save(tmp_path / "wide")
    for name, message in (
        ("wide", "a context of width 4 with sentences of 64 tokens takes up to 577 tokens, but the model reads 512"),
        ("bert", "its config.json names the architectures ['BertModel']"),
        ("cut.gguf", "cut.gguf'"),
        ("small", "the vocabularies differ: the model of --init has 300 tokens"),
    ):
        code, _, err = ctxsim(*words(corpus, tmp_path / name, tmp_path / "out"))
        assert code == 2 and message in err and err.count("\n") == 1
    monkeypatch.setitem(sys.modules, "peft", None)  # as if it were not installed
    code, _, err = ctxsim(*words(corpus, start, tmp_path / "out", *LORA))
    assert code == 2 and "--lora-rank needs the package peft: pip install 'ctxsim-hf[lm]'" in err
    assert not list(tmp_path.glob("out*"))
