"""Computation that does not spin: threads that wait for each other sleep instead of keeping a core busy.

OpenMP, which torch uses, waits in a loop of milliseconds after each product unless OMP_WAIT_POLICY says otherwise when
it is loaded. If another process wants the core, small products then take ten times as long. libgomp cuts this loop
short while a process has more OpenMP threads than cores, so a second, sleeping team of threads is kept during a
computation. OpenBLAS, which numpy uses, spins likewise; our products of numpy are small, so one thread computes them.
Neither the environment nor the number of threads of whoever imports this package is changed beyond the computation.
"""

import atexit
import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

INTEL = "KMP_DUPLICATE_LIB_OK"
KEEP_SECONDS = 1.0  # how long the sleeping team is kept for the next computation


@contextlib.contextmanager
def no_spinning() -> Iterator[None]:
    """Let threads sleep while they wait, in this block. Blocks may be nested, and entered by many threads at once."""
    _state.enter()
    try:
        yield
    finally:
        _state.leave()


@contextlib.contextmanager
def torch_threads(number: int | None) -> Iterator[None]:
    """Let torch compute with so many threads in this block, which only one thread of a process may enter; None leaves
    their number as it is."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _State:
    """The blocks that are active in this process, the limit on OpenBLAS, and the sleeping team."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._blocks = 0
        self._limit: Any = None
        self._team: threading.Thread | None = None
        self._ends = False  # the process

    def enter(self) -> None:
        with self._condition:
            self._blocks += 1
            if self._blocks == 1:
                _free_blas()
                self._limit = _blas(*_imported()).limit(limits=1)
            self._condition.notify_all()
            if (
                self._team is None
                and not self._ends
                and (torch := sys.modules.get("torch"))
                and torch.get_num_threads() > 1
            ):
                self._team = threading.Thread(target=self._sleep, args=(torch,), name="ctxsim-sleeper", daemon=True)
                self._team.start()

    def leave(self) -> None:
        with self._condition:
            self._blocks -= 1
            if self._blocks == 0:
                _free_blas()
                self._limit.restore_original_limits()
                _free_blas()
                self._condition.notify_all()

    def end(self) -> None:
        """Let the team go before the interpreter does, which would abort with a thread of C++ still running."""
        with self._condition:
            self._ends, team = True, self._team
            self._condition.notify_all()
        if team is not None:
            team.join()

    def after_fork(self) -> None:
        """Forget, in a forked process, the threads of its parent and a lock that one of them may have held."""
        self._condition, self._team = threading.Condition(), None

    def _sleep(self, torch: Any) -> None:
        """Start a team of OpenMP threads, and sleep until no block has been active for a while."""
        torch.zeros(1 << 16).add_(1)  # large enough to be computed by a team
        with self._condition:
            while True:
                self._condition.wait_for(lambda: self._ends or self._blocks == 0)
                if self._ends or not self._condition.wait_for(lambda: self._ends or self._blocks > 0, KEEP_SECONDS):
                    self._team = None
                    return


def _free_blas() -> None:
    """Let any thread set how many OpenBLAS has. Recent releases of threadpoolctl heed none but the one that set it
    before, and the last block may be left in another thread than the first was entered in."""
    for library in _blas(*_imported()).lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


def _imported() -> tuple[int, str]:
    """Return the number of modules and the last one: the number alone may be the same after some were removed."""
    return len(sys.modules), next(reversed(sys.modules))


@lru_cache(maxsize=1)
def _blas(modules: int, last: str) -> "ThreadpoolController":
    """Return the OpenBLAS libraries of the process. Numpy and scipy have one each, so they are looked for again, which
    takes milliseconds, whenever a module was imported."""
    is_set = INTEL in os.environ
    from threadpoolctl import ThreadpoolController

    if not is_set:  # which threadpoolctl sets when it is imported
        os.environ.pop(INTEL, None)
    return ThreadpoolController().select(user_api="blas")


_state = _State()
atexit.register(_state.end)
os.register_at_fork(after_in_child=_state.after_fork)
