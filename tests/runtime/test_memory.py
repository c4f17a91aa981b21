"""Large blocks that are freed and allocated again, counted by the pages that the system has to fill."""

import platform
import resource
import subprocess
import sys

import pytest
import torch

from ctxsim_hf.runtime.memory import reused_memory

BLOCK = 64 << 20  # bytes
TIMES = 10
PAGES = BLOCK // resource.getpagesize()

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told to keep memory")


def pages_filled() -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(TIMES):
        torch.ones(BLOCK // 4)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_a_block_is_filled_once() -> None:
    with reused_memory():
        pages_filled()  # now the memory is there
        assert pages_filled() < PAGES / 10


RESTORED = """
import torch
from ctxsim_hf.runtime.memory import reused_memory
def resident():
    return int(open("/proc/self/statm").read().split()[1])
with reused_memory():
    before = resident()
    blocks = [torch.ones(1 << 24) for _ in range(4)]
    del blocks
    inside = resident() - before
print(inside > 50_000, resident() - before < 10_000)
"""


def test_memory_is_returned_at_the_end() -> None:
    """Pages of 4 KB: 256 MB are kept within the block, and given back after it."""
    if resource.getpagesize() != 4096:
        pytest.skip("counts pages of 4 KB")
    said = subprocess.run([sys.executable, "-c", RESTORED], capture_output=True, text=True, check=True).stdout
    assert said == "True True\n"
