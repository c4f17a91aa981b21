"""`ctxsim train discriminator` learns which sentence belongs in a context; the linear head cannot."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(("head", "learns"), [("mlp", True), ("linear", False)])
def test_accuracy_on_held_out_documents(ctxsim: Run, corpus: Path, tmp_path: Path, head: str, learns: bool) -> None:
    data = ("--chunks", corpus / "chunks", "--tokenizer", corpus / "tokenizer", "--output", tmp_path / "out")
    sizes = ("--preset", "tiny", "--hidden-size", 64, "--embedding-size", 64, "--head-size", 128, "--head", head)
    steps = ("--max-steps", 150, "--tokens-per-batch", 3000, "--schedule", "constant", "--learning-rate", 0.01)
    code, said, err = ctxsim("train", "discriminator", *data, *sizes, *steps, "--dropout", 0)
    assert code == 0, err
    accuracy = json.loads((tmp_path / "out/metrics.json").read_text())["accuracy_corpus"]
    # One replacement in six is about the same topic, so 0.92 is the most that can be had.
    assert accuracy > 0.85 if learns else 0.4 < accuracy < 0.6
    assert ("No better than chance: accuracy against sentences of other documents" in said) == (not learns)


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


def test_a_tokenizer_without_a_pad_token(ctxsim: Run, corpus: Path, tmp_path: Path) -> None:
    tokenizer = without(corpus / "tokenizer", tmp_path / "tokenizer", "pad_token")
    flags = ("--chunks", corpus / "chunks", "--tokenizer", tokenizer, "--preset", "tiny", "--output", tmp_path / "out")
    code, _, err = ctxsim("train", "discriminator", *flags)
    assert code == 2 and "needs a tokenizer with pad_token, that in" in err and err.count("\n") == 1, err
    code, _, err = ctxsim("train", "generator", *flags)
    expected = "needs a tokenizer with bos_token, pad_token, eos_token, that in"
    assert code == 2 and expected in err and "has no pad_token;" in err and err.count("\n") == 1, err


def without(tokenizer: Path, folder: Path, mark: str) -> Path:
    """A copy of a tokenizer that does not know one of its marks, as GPT-2's has no pad token."""
    shutil.copytree(tokenizer, folder, ignore=shutil.ignore_patterns("stage.json"))
    path = folder / "tokenizer_config.json"
    bare = {"tokenizer_class": "TokenizersBackend", mark: None}
    path.write_text(json.dumps(json.loads(path.read_text()) | bare))
    return folder


def test_chunks_without_held_out_documents(ctxsim: Run, corpus: Path, tmp_path: Path) -> None:
    chunked = ("chunk", "--corpus", corpus / "texts.jsonl", "--held-out", 0, "--output", tmp_path / "chunks")
    assert ctxsim(*chunked)[0] == 0
    flags = ("--chunks", tmp_path / "chunks", "--tokenizer", corpus / "tokenizer", "--output", tmp_path / "out")
    code, _, err = ctxsim("train", "discriminator", *flags)
    assert code == 2 and "has no held_out chunks" in err
