"""The seconds of functions, and the memory of processes."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np


def timed(run: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> tuple[Any, float]:
    """Return what a function returns, and its seconds."""
    start = clock()
    result = run()
    return result, clock() - start


def best(run: Callable[[], Any], repeat: int = 5) -> float:
    """Return the seconds of the fastest of some runs."""
    return min(timed(run)[1] for _ in range(repeat))


def in_turn(
    systems: Mapping[str, Callable[[Any], Any]], parts: Sequence[Any]
) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """Return the seconds of each system over all parts, and the arrays it returned. The systems take turns, so that
    whatever else the machine does meets them all."""
    seconds = dict.fromkeys(systems, 0.0)
    found: dict[str, list[np.ndarray]] = {name: [] for name in systems}
    for part in parts:
        for name, system in systems.items():
            result, taken = timed(partial(system, part))
            found[name].append(np.asarray(result))
            seconds[name] += taken
    return seconds, {name: np.concatenate(arrays) for name, arrays in found.items()}


def anonymous_memory(process: int | str = "self") -> int:
    """Return the bytes of a process without the pages of mapped files, which the system takes back when it needs
    them."""
    status = Path(f"/proc/{process}/status").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon"))
