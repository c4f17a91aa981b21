"""`ctxsim train generator`: all kinds learn to use their context, and open by their Auto classes."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import torch
from tiny_seq2seq import save_seq2seq
from transformers import BartConfig, BartForConditionalGeneration

from ctxsim_hf.context_models.context_data import ContextData
from ctxsim_hf.context_models.context_use import mean_with_interval, unigram_counts, unrelated_contexts
from ctxsim_hf.context_models.light.closed_form import neighbour_counts, positive_mutual_information
from ctxsim_hf.context_models.registry import load_context_model
from ctxsim_hf.text.tokenized import TokenizedChunks

Run = Callable[..., tuple[int, str, str]]


def train(ctxsim: Run, corpus: Path, output: Path, *flags: object) -> dict[str, float]:
    fixed = ("--chunks", corpus / "chunks", "--tokenizer", corpus / "tokenizer", "--preset", "tiny")
    code, _, err = ctxsim("train", "generator", *fixed, "--tokens-per-batch", 3000, "--output", output, *flags)
    assert code == 0, err
    metrics: dict[str, float] = json.loads((output / "metrics.json").read_text())
    return metrics


@pytest.mark.parametrize("flags", [["--max-steps", 60], ["--max-steps", 60, "--num-sampled", 0], ["--closed-form"]])
def test_light_generators_use_their_context(ctxsim: Run, corpus: Path, tmp_path: Path, flags: list[object]) -> None:
    metrics = train(ctxsim, corpus, tmp_path / "out", *flags)
    for direction in ("sentence", "left", "right"):
        assert metrics[f"{direction}_gain_low"] > 0.1, direction
        assert metrics[f"{direction}_perplexity"] < metrics[f"{direction}_unigram_perplexity"]


def test_closed_form_runs_are_bitwise_equal(ctxsim: Run, corpus: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        train(ctxsim, corpus, tmp_path / name, "--closed-form")
    assert (tmp_path / "one/model.safetensors").read_bytes() == (tmp_path / "two/model.safetensors").read_bytes()


def test_one_seq2seq_generator_for_all_directions_uses_its_context(ctxsim: Run, corpus: Path, tmp_path: Path) -> None:
    sizes = ("--hidden-size", 64, "--ffn-size", 128, "--dropout", 0)
    metrics = train(ctxsim, corpus, tmp_path / "out", "--direction", "all", "--max-steps", 200, *sizes)
    for direction in ("sentence", "left", "right"):
        assert metrics[f"{direction}_gain_low"] > 0.02, direction
        assert metrics[f"{direction}_perplexity"] < metrics[f"{direction}_unigram_perplexity"]
    code = (
        "import sys, ctxsim_hf; from transformers import AutoModelForSeq2SeqLM, AutoTokenizer\n"
        "model = AutoModelForSeq2SeqLM.from_pretrained(sys.argv[1])\n"
        "print(type(model).__name__, model.config.direction, len(AutoTokenizer.from_pretrained(sys.argv[1])))"
    )
    out = subprocess.check_output([sys.executable, "-c", code, tmp_path / "out"], text=True)
    assert out.split()[:2] == ["ContextGeneratorModel", "all"]


@pytest.mark.parametrize("direction", ["sentence", "left", "right"])
def test_a_seq2seq_generator_for_one_direction(ctxsim: Run, corpus: Path, tmp_path: Path, direction: str) -> None:
    metrics = train(ctxsim, corpus, tmp_path / "out", "--direction", direction, "--max-steps", 2)
    assert {name.split("_")[0] for name in metrics if name.endswith("gain")} == {direction}


def test_it_starts_from_a_bart_checkpoint(ctxsim: Run, corpus: Path, data: ContextData, tmp_path: Path) -> None:
    sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "max_position_embeddings": 256}
    ids = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2}
    for name, vocabulary in (("bart", len(data.tokenizer)), ("other", 50)):
        config = BartConfig(vocab_size=vocabulary, **sizes, **heads, **ids)
        BartForConditionalGeneration(config).save_pretrained(tmp_path / name)
    metrics = train(
        ctxsim, corpus, tmp_path / "out", "--direction", "left", "--init", tmp_path / "bart", "--max-steps", 2
    )
    assert metrics["steps"] == 2
    record = json.loads((tmp_path / "out/stage.json").read_text())
    assert "init" not in record["arguments"] and set(record["inputs"]["init"]) == {"model_type", "xxh3_128"}
    again = ("--direction", "left", "--preset", "tiny", "--tokens-per-batch", 3000, "--max-steps", 2)
    again = (*again, "--chunks", corpus / "chunks", "--tokenizer", corpus / "tokenizer", "--output", tmp_path / "out")
    (tmp_path / "bart").rename(tmp_path / "moved")
    code, _, err = ctxsim("train", "generator", *again, "--init", tmp_path / "moved")
    assert code == 0, err
    BartForConditionalGeneration(BartConfig.from_pretrained(tmp_path / "moved")).save_pretrained(tmp_path / "moved")
    code, _, err = ctxsim("train", "generator", *again, "--init", tmp_path / "moved")
    assert code == 2 and "was made by another run: inputs.init.xxh3_128 was" in err
    fixed = ("--chunks", corpus / "chunks", "--tokenizer", corpus / "tokenizer", "--direction", "left")
    code, _, err = ctxsim("train", "generator", *fixed, "--init", tmp_path / "other", "--output", tmp_path / "bad")
    assert code == 2 and "expected a tokenizer of 50 tokens for the checkpoint" in err
    (tmp_path / "other/config.json").write_text('{"model_type": "bert"}')
    code, _, err = ctxsim("train", "generator", *fixed, "--init", tmp_path / "other", "--output", tmp_path / "bad")
    assert code == 2 and "--init must be a BART checkpoint" in err


def test_the_tokenizer_is_that_of_the_checkpoint(ctxsim: Run, corpus: Path, tmp_path: Path) -> None:
    bart = save_seq2seq("bart", tmp_path / "bart")
    steps = ("--max-steps", 2, "--tokens-per-batch", 3000, "--preset", "tiny", "--max-sentence-tokens", 32)
    fixed = ("train", "generator", "--chunks", corpus / "chunks", *steps)
    code, _, err = ctxsim(*fixed, "--direction", "all", "--init", bart, "--output", tmp_path / "out")
    assert code == 0, err
    assert (tmp_path / "out/tokenizer.json").read_bytes() == (bart / "tokenizer.json").read_bytes()
    index = ("index", "--chunks", corpus / "chunks", "--generator", tmp_path / "out", "--output", tmp_path / "origin")
    assert ctxsim(*index)[0] == 0
    assert load_context_model(tmp_path / "origin/context_models/generator").terms == ("sentence", "left", "right")

    again = ("--direction", "left", "--init", bart, "--output", tmp_path / "bad")
    names = json.loads((bart / "tokenizer_config.json").read_text())
    bare = {"tokenizer_class": "TokenizersBackend", "bos_token": None}
    (bart / "tokenizer_config.json").write_text(json.dumps(names | bare))
    code, _, err = ctxsim(*fixed, *again)
    assert code == 2 and "needs a tokenizer with bos_token, pad_token, eos_token, that in" in err
    assert "has no bos_token; name another with --tokenizer" in err and err.count("\n") == 1
    (bart / "tokenizer.json").unlink()
    code, _, err = ctxsim(*fixed, *again)
    assert code == 2 and f"expected a file tokenizer.json in {str(bart)!r}, but there is none" in err
    for flags in ([], ["--direction", "left"]):
        code, _, err = ctxsim(*fixed, *flags, "--output", tmp_path / "bad")
        assert code == 2 and "--tokenizer is needed where there is no --init to take it from" in err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--direction", "up"], "--direction must be one of sentence, left, right, all, got 'up'"),
        (["--kind", "heavy"], "--kind must be one of light, seq2seq, got 'heavy'"),
        (["--kind", "light", "--direction", "left"], "--direction and --init are for --kind seq2seq"),
        (
            ["--direction", "left", "--preset", "light"],
            "the preset 'light' has no generator; expected one of tiny, small",
        ),
    ],
)
def test_bad_input_is_one_line(ctxsim: Run, corpus: Path, tmp_path: Path, flags: list[object], message: str) -> None:
    fixed = ("--chunks", corpus / "chunks", "--tokenizer", corpus / "tokenizer", "--output", tmp_path / "out")
    code, _, err = ctxsim("train", "generator", *fixed, *flags)
    assert code == 2 and message in err and err.count("\n") == 1


def test_neighbour_counts_and_mutual_information_by_hand() -> None:
    # One chunk: sentences {0, 1}, {1}, {2}; another: {0}, {2, 2}.
    chunks = TokenizedChunks(
        np.array([0, 1, 1, 2, 0, 2, 2], dtype=np.uint16),
        np.array([0, 2, 3, 4, 5, 7]),
        np.array([0, 3, 5]),
        np.array([0, 3, 5]),
    )
    counts = neighbour_counts(chunks, 3)
    assert counts.toarray().tolist() == [[0, 1, 1], [1, 2, 1], [1, 1, 0]]
    rows = np.array([2.0, 4.0, 2.0])
    smoothed = rows**0.75 / (rows**0.75).sum()
    expected = np.maximum(0, np.log(np.maximum(counts.toarray() / rows[:, None], 1e-30) / smoothed))
    assert positive_mutual_information(scipy.sparse.csr_array(counts)).toarray() == pytest.approx(expected, abs=1e-6)


def test_partners_come_from_other_documents() -> None:
    documents = np.array([0, 0, 0, 0, 0, 1, 1, 2])
    assert (documents[unrelated_contexts(documents)] != documents).all()


def test_gain_by_hand() -> None:
    gain = mean_with_interval("gain", np.array([2.0, 4.0, 6.0]), np.array([1.0, 1.0, 2.0]), np.array([0, 0, 1]))
    assert gain["gain"] == 3.0
    assert gain["gain_low"] == gain["gain_high"] == 3.0, "both documents gain 3 a token"


def test_unigram_counts_include_end_marks(data: ContextData) -> None:
    counts = unigram_counts(data)
    assert counts.sum() == len(data.train.tokens) + len(data.train.lengths)
    assert counts[2] == len(data.train.lengths)
    assert torch.from_numpy(counts).dtype == torch.int64
