"""A lazy, ordered map over processes: a slow reader feeds many workers in flat memory."""

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

Task = TypeVar("Task")
Result = TypeVar("Result")


def available_cores() -> int:
    """Return the number of cores this process may use, or the machine's where the system does not say."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def ordered_map(function: Callable[[Task], Result], tasks: Iterable[Task], workers: int) -> Iterator[Result]:
    """Yield `map(function, tasks)`, computed by `workers` processes with at most two tasks each under way.

    One worker means this process: nothing is started. An exception in a worker is raised here as what it was; a worker
    that was killed is a [`UserError`].
    """
    if workers == 1:
        yield from map(function, tasks)
        return
    # Not fork: a forked child of a process with threads (Arrow, datasets) can hang.
    context = multiprocessing.get_context("forkserver")
    pending: deque[Future[Result]] = deque()
    with ProcessPoolExecutor(workers, context, initializer=_die_with_parent) as pool:
        try:
            for task in tasks:
                pending.append(pool.submit(function, task))
                if len(pending) >= 2 * workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        except BrokenProcessPool as error:
            raise UserError(
                f"one of {workers} worker processes was killed, perhaps for lack of memory. What was finished is "
                "kept: run the same command again to go on, with fewer --workers if memory is short"
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)


def _die_with_parent() -> None:
    """Leave Ctrl-C to the parent, and end with it even where it is killed and cannot say so."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parent = multiprocessing.parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
