"""What the tests of clusters share: one thread, as in the tasks, and the stages run in this process."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))

from stages import STAGES, prepare


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="package")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("start")
    prepare(folder)
    return folder


@pytest.fixture(scope="package")
def here(start: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every stage, run in this process."""
    folder = tmp_path_factory.mktemp("here")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    for name, run in STAGES.items():
        run(start, folder / name)
    torch.set_num_threads(before)
    return folder
