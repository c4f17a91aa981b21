"""What every test shares: no network, caches of its own, made-up text, and the real data where it is at hand."""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHARED_DATA = ROOT.parent / "shared" / "data"


def pytest_configure(config: pytest.Config) -> None:
    # Before any test module imports a Hugging Face library, which read these once; other processes inherit them.
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["HF_DATASETS_DISABLE_PROGRESS_BARS"] = "1"
    os.environ["HF_HOME"] = tempfile.mkdtemp(prefix="ctxsim-tests-")
    config.add_cleanup(lambda: shutil.rmtree(os.environ["HF_HOME"], ignore_errors=True))


@pytest.fixture
def shared_data() -> Path:
    if not SHARED_DATA.is_dir():
        pytest.skip("needs the evaluation data sets in ../shared/data, which are not part of this project")
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
