"""A lazy, ordered map over processes: one reader feeds many workers in constant memory."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from ctxsim_hf.runtime.errors import UserError

Item = TypeVar("Item")
Result = TypeVar("Result")


def available_cores() -> int:
    """Return the number of cores this process may use, or all of the machine if the system does not say."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def ordered_map(function: Callable[[Item], Result], items: Iterable[Item], workers: int) -> Iterator[Result]:
    """Yield `map(function, items)`, computed by `workers` processes with at most two items in flight for each.

    One worker means this process: no other is started. An exception in a worker is raised here unchanged. If a worker
    is killed, a [`UserError`] is raised.
    """
    if workers == 1:
        yield from map(function, items)
        return
    # Not fork: a forked child of a process with threads (Arrow, datasets) can hang.
    context = multiprocessing.get_context("forkserver")
    pending: deque[Future[Result]] = deque()
    with ProcessPoolExecutor(workers, context, initializer=_die_with_parent) as pool:
        try:
            for item in items:
                pending.append(pool.submit(function, item))
                if len(pending) >= 2 * workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        except BrokenProcessPool as error:
            raise UserError(
                f"one of {workers} worker processes was killed, perhaps for lack of memory. What was finished is "
                "kept: run the same command again to resume, with fewer --workers if memory is short"
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)


def _die_with_parent() -> None:
    """Leave Ctrl-C to the parent, and exit when the parent exits, even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parent = multiprocessing.parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
