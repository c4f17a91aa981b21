"""Threads that wait sleep, whoever imports the package; nothing of the importer is changed beyond the computation."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from threadpoolctl import threadpool_info

from ctxsim_hf.runtime.parallel import available_cores
from ctxsim_hf.runtime.threads import no_spinning

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


def test_many_threads_share_the_limit() -> None:
    before, together = blas_threads(), threading.Barrier(4)

    def compute(_: int) -> set[int]:
        with no_spinning():
            together.wait(30)
            return set(blas_threads())

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(compute, range(4))) == [{1}] * 4
    assert blas_threads() == before
