"""A lazy, ordered map over processes: a slow reader feeds many workers in flat memory."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


def available_cores() -> int:
    """That this process may use; all of the machine's where the system does not tell."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def ordered_map(function: Callable[[Task], Result], tasks: Iterable[Task], workers: int) -> Iterator[Result]:
    """`map(function, tasks)` on `workers` processes, with at most two tasks a worker under way. One worker means this
    process, with nothing started."""
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
        finally:
            pool.shutdown(cancel_futures=True)


def _die_with_parent() -> None:
    """A worker leaves Ctrl-C to its parent, and ends with it even where that one is killed and cannot say so."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parent = multiprocessing.parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
