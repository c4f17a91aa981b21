"""Threads that wait sleep, whoever imports the package; nothing of the importer is changed beyond the computation."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits
from tiny_surrogate import save_tiny

from ctxsim_hf.runtime.parallel import available_cores
from ctxsim_hf.runtime.threads import no_spinning, torch_threads

# Small products with pauses between them, as a program in Python makes them. Spinning shows as time of the processor,
# which, other than time by the clock, does not depend on what else the machine does.
SMALL_PRODUCTS = """
import contextlib, sys, time
import numpy as np, torch
from ctxsim_hf.runtime.threads import no_spinning
vector, matrix = torch.zeros(200_000), np.ones((300, 300))
with no_spinning() if sys.argv[1] == "scope" else contextlib.nullcontext():
    vector.add(1), time.sleep(0.1)
    start = time.process_time()
    for _ in range(50):
        vector.add(1), matrix @ matrix, time.sleep(0.002)
    print(time.process_time() - start)
"""


@pytest.mark.skipif(available_cores() < 2, reason="one core has nobody to wait for")
def test_waiting_threads_sleep() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "OPENBLAS_"))}
    seconds = {}
    for way in ("plain", "scope"):
        command = [sys.executable, "-c", SMALL_PRODUCTS, way]
        seconds[way] = float(subprocess.run(command, capture_output=True, env=environment, check=True).stdout)
    assert seconds["scope"] < seconds["plain"] / 2


def blas_threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.fixture
def two_threads() -> Iterator[None]:
    """Something to limit and to restore, whatever the environment says."""
    with threadpool_limits(2, user_api="blas"):
        yield


@pytest.mark.usefixtures("two_threads")
def test_the_importers_threads_are_restored() -> None:
    before = blas_threads()
    with no_spinning():
        with no_spinning():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
    assert blas_threads() == before
    with pytest.raises(ValueError), no_spinning():
        raise ValueError
    assert blas_threads() == before


LATE_LIBRARY = """
import sys
from ctxsim_hf.runtime.threads import no_spinning
placeholders = [f"placeholder{number}" for number in range(1000)]
sys.modules |= dict.fromkeys(placeholders)
with no_spinning():
    assert "scipy" not in sys.modules
size = len(sys.modules)
import scipy.linalg  # which brings an OpenBLAS of its own
while len(sys.modules) > size:  # as many modules as before
    del sys.modules[placeholders.pop()]
from threadpoolctl import threadpool_info
with no_spinning():
    print({pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"})
"""


def test_a_library_that_came_later_is_limited() -> None:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    command = [sys.executable, "-c", LATE_LIBRARY]
    said = subprocess.run(command, capture_output=True, env=environment, check=True, text=True).stdout
    assert said == "{1}\n"


@pytest.mark.usefixtures("two_threads")
def test_many_threads_share_the_limit() -> None:
    before, together = blas_threads(), threading.Barrier(4)

    def compute(_: int) -> set[int]:
        with no_spinning():
            together.wait(30)
            return set(blas_threads())

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(compute, range(4))) == [{1}] * 4
    assert blas_threads() == before


IMPORTER = """
import json, os, sys
import accelerate, torch, transformers  # which set variables of their own
before, threads = dict(os.environ), torch.get_num_threads()
from ctxsim_hf import SentenceEncoder
SentenceEncoder.from_pretrained(sys.argv[1]).similarity(["One sentence."], ["Another."])
print(json.dumps([before == dict(os.environ), threads, torch.get_num_threads()]))
"""


def test_the_importers_environment_is_left_alone(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")}
    command = [sys.executable, "-c", IMPORTER, str(save_tiny(tmp_path / "tiny"))]
    said = subprocess.run(command, capture_output=True, env=environment, check=True, text=True).stdout
    same, before, after = json.loads(said)
    assert same and before == after


@pytest.mark.parametrize("number", [1, None])
def test_torch_gets_its_threads_back(number: int | None) -> None:
    before = torch.get_num_threads()
    with pytest.raises(ValueError), torch_threads(number):
        assert torch.get_num_threads() == (number or before)
        raise ValueError
    assert torch.get_num_threads() == before
