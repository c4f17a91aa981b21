"""What every test shares: no network, caches of its own, made-up text, and the real data where it is at hand."""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from planted import PlantedCorpus
from training_corpus import corpus, data  # noqa: F401 (fixtures)

ROOT = Path(__file__).parents[1]
SHARED_DATA = ROOT.parent / "shared" / "data"


# Before any test module or other conftest.py imports a Hugging Face library, which read these once; other processes
# inherit them.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_DISABLE_PROGRESS_BARS"] = "1"
os.environ["HF_HOME"] = tempfile.mkdtemp(prefix="ctxsim-tests-")


def pytest_configure(config: pytest.Config) -> None:
    config.add_cleanup(lambda: shutil.rmtree(os.environ["HF_HOME"], ignore_errors=True))


@pytest.fixture
def shared_data() -> Path:
    if not SHARED_DATA.is_dir():
        pytest.skip("needs the evaluation datasets in ../shared/data, which are not part of this project")
    return SHARED_DATA


@pytest.fixture
def ctxsim(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run the command line in this process: (exit code, standard output, standard error)."""
    from ctxsim_hf.cli import main

    def run(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        try:
            code = main([str(word) for word in words])
        except SystemExit as exit:  # argparse
            code = int(exit.code or 0)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tiny context models trained on a planted corpus, and the origin folders `origin` (light) and `origin-seq2seq`
    made of them; all by the commands."""
    from ctxsim_hf.cli import main

    def command(*words: object) -> None:
        assert main([str(word) for word in words]) == 0

    folder = tmp_path_factory.mktemp("planted")
    PlantedCorpus().write(folder / "texts.jsonl")
    chunks, tokenizer = folder / "chunks", folder / "tokenizer"
    command("chunk", "--corpus", folder / "texts.jsonl", "--held-out", 0.05, "--output", chunks)
    command("train-tokenizer", "--chunks", chunks, "--vocab-size", 800, "--lowercase", "--output", tokenizer)
    inputs = ("--chunks", chunks, "--tokenizer", tokenizer, "--preset", "tiny", "--eval-every", 1000)
    steps = ("--tokens-per-batch", 3000, "--schedule", "constant", "--learning-rate", 0.01, "--max-steps", 150)
    sizes = ("--hidden-size", 64, "--embedding-size", 64, "--head-size", 128, "--dropout", 0)
    discriminator, light, seq2seq = folder / "discriminator", folder / "generator", folder / "seq2seq"
    command("train", "discriminator", *inputs, *steps, *sizes, "--output", discriminator)
    command("train", "generator", *inputs, "--max-steps", 300, "--output", light)
    command("train", "generator", *inputs, "--direction", "all", "--max-steps", 10, "--output", seq2seq)
    for generator, origin in ((light, "origin"), (seq2seq, "origin-seq2seq")):
        models = ("--discriminator", discriminator, "--generator", generator)
        command("index", "--chunks", chunks, *models, "--output", folder / origin)
    return folder
