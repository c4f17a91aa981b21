"""`ctxsim train discriminator` learns which sentence belongs in a context; the linear head cannot."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(("head", "learns"), [("mlp", True), ("linear", False)])
def test_accuracy_on_held_out_documents(ctxsim: Run, corpus: Path, tmp_path: Path, head: str, learns: bool) -> None:
    data = ("--chunks", corpus / "chunks", "--tokenizer", corpus / "tokenizer", "--output", tmp_path / "out")
    sizes = ("--preset", "tiny", "--hidden-size", 64, "--embedding-size", 64, "--head-size", 128, "--head", head)
    steps = ("--max-steps", 150, "--tokens-per-batch", 3000, "--schedule", "constant", "--learning-rate", 0.01)
    code, _, err = ctxsim("train", "discriminator", *data, *sizes, *steps, "--dropout", 0)
    assert code == 0, err
    accuracy = json.loads((tmp_path / "out/metrics.json").read_text())["accuracy_corpus"]
    # One replacement in six is about the same topic, so 0.92 is the most that can be had.
    assert accuracy > 0.85 if learns else 0.4 < accuracy < 0.6


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--preset", "huge"], "--preset must be one of tiny, light, small, base, large, got 'huge'"),
        (["--head", "conv"], "--head must be one of mlp, linear, got 'conv'"),
        (["--chunks", "nowhere"], "expected a folder made by `ctxsim chunk`, but 'nowhere' does not exist"),
        (["--tokenizer", "nowhere"], "expected a file tokenizer.json in 'nowhere', but there is none"),
        (["--tokens-per-batch", 10], "--tokens-per-batch 10 is less than"),
        (
            ["--tokens-per-batch", 10**9, "--gradient-accumulation-steps", 2],
            "expected at least 2 batches for one step, got 1",
        ),
        (["--schedule", "steep"], "--schedule must be one of linear, cosine, constant, got 'steep'"),
        (["--mixed-precision", "fp17"], "--mixed-precision must be one of no, fp16, bf16, got 'fp17'"),
        (["--report-to", "notebook"], "accelerate does not accept --report-to or --mixed-precision"),
        (["--max-sentence-tokens", 0], "--max-sentence-tokens must be at least 1, got 0"),
    ],
)
def test_bad_input_is_one_line(ctxsim: Run, corpus: Path, tmp_path: Path, flags: list[object], message: str) -> None:
    fixed = ("--chunks", corpus / "chunks", "--tokenizer", corpus / "tokenizer", "--output", tmp_path / "out")
    code, _, err = ctxsim("train", "discriminator", *fixed, *flags)
    assert code == 2
    assert err.startswith("ctxsim train discriminator: ") and message in err and err.count("\n") == 1


def test_chunks_without_held_out_documents(ctxsim: Run, corpus: Path, tmp_path: Path) -> None:
    chunked = ("chunk", "--corpus", corpus / "texts.jsonl", "--held-out", 0, "--output", tmp_path / "chunks")
    assert ctxsim(*chunked)[0] == 0
    flags = ("--chunks", tmp_path / "chunks", "--tokenizer", corpus / "tokenizer", "--output", tmp_path / "out")
    code, _, err = ctxsim("train", "discriminator", *flags)
    assert code == 2 and "has no held_out chunks" in err
