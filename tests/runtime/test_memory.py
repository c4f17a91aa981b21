"""Large blocks that are freed and allocated again, counted by the pages that the system has to fill.

In processes of their own: once an allocation has failed, which some tests want, glibc serves a thread from a heap of
another kind, to which its settings do not apply.
"""

import platform
import resource
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told to keep memory")

FILLED = """
import resource
import torch
from ctxsim_hf.runtime.memory import reused_memory
def pages_filled():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        torch.ones(1 << 24)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
with reused_memory():
    pages_filled()  # now the memory is there
    print(pages_filled())
"""
BLOCK = 4 << 24  # bytes

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


def run(script: str) -> str:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout


def test_a_block_is_filled_once() -> None:
    assert int(run(FILLED)) < BLOCK / resource.getpagesize() / 10


def test_memory_is_returned_at_the_end() -> None:
    """Pages of 4 KB: 256 MB are kept within the block, and given back after it."""
    if resource.getpagesize() != 4096:
        pytest.skip("counts pages of 4 KB")
    assert run(RESTORED) == "True True\n"
