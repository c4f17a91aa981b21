"""Freed memory that is used again: a step of training allocates the same large tensors as the step before.

The allocator of Linux (glibc) returns blocks of more than 32 MB to the system as soon as they are freed, and the
system fills new ones with zeros, page by page. For a table of 16,000 vectors of 1,024 numbers that takes longer than
the arithmetic of a step.

In threads other than the first, and after an allocation has failed, glibc takes large blocks from the system whatever
it is told; then nothing changes.
"""

import contextlib
import ctypes
import sys
from collections.abc import Iterator

# Parameters of mallopt and, as values, what they come to by themselves in a process that has used large blocks.
MMAP_MAX, MMAP_THRESHOLD, TRIM_THRESHOLD = -4, -3, -1
USUAL = {MMAP_MAX: 1 << 16, MMAP_THRESHOLD: 32 << 20, TRIM_THRESHOLD: 64 << 20}
KEEP_ALL = {MMAP_MAX: 0, TRIM_THRESHOLD: 2**31 - 1}


@contextlib.contextmanager
def reused_memory() -> Iterator[None]:
    """Keep freed memory in this block, and return it to the system at the end. Without glibc, do nothing."""
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    if libc is None or not hasattr(libc, "mallopt"):
        yield
        return
    try:
        for parameter, value in KEEP_ALL.items():
            libc.mallopt(parameter, value)
        yield
    finally:
        for parameter, value in USUAL.items():
            libc.mallopt(parameter, value)
        libc.malloc_trim(0)
