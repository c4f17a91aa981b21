"""Harvests of the planted corpus, each made once."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from small_harvest import harvest_words
from threadpoolctl import threadpool_limits

from ctxsim_hf.origin.similarity import OriginSimilarity


@contextlib.contextmanager
def single_thread() -> Iterator[None]:
    """As in processes with OMP_NUM_THREADS=1, so that bytes can be compared with theirs."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with single_thread():
        yield


@pytest.fixture(scope="package")
def harvest(planted: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Make a harvest by the command."""
    from ctxsim_hf.cli import main

    def make(*more: object) -> Path:
        output = tmp_path_factory.mktemp("harvest") / "pairs"
        with single_thread():
            assert main(harvest_words(planted, output, *more)) == 0
        return output

    return make


@pytest.fixture(scope="package")
def pair_harvest(harvest: Callable[..., Path]) -> Path:
    return harvest()


@pytest.fixture(scope="package")
def group_harvest(harvest: Callable[..., Path]) -> Path:
    return harvest("--mode", "group", "--pairs", 3000, "--near", 20, "--document", 8, "--unrelated", 4)


@pytest.fixture(scope="package")
def origin(planted: Path) -> OriginSimilarity:
    return OriginSimilarity.from_pretrained(planted / "origin", num_contexts=10, background_size=40, screen_chunks=100)
