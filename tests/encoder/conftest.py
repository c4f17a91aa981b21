"""One tiny surrogate for all tests of this folder."""

from pathlib import Path

import pytest
from tiny_surrogate import save_tiny

from ctxsim_hf import SentenceEncoder


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("surrogate"))


@pytest.fixture(scope="session")
def encoder(folder: Path) -> SentenceEncoder:
    return SentenceEncoder.from_pretrained(folder)
