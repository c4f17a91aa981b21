"""Ctrl-C and SIGTERM -> a request to stop after the current step."""

import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Self


class Interruption:
    """A context manager in which the first signal only sets `requested`, and a second one interrupts at once."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.requested = False

    def __enter__(self) -> Self:
        # Python allows handlers in the main thread only; elsewhere, as in a notebook's worker, signals are left alone.
        self._in_main_thread = threading.current_thread() is threading.main_thread()
        if self._in_main_thread:
            self._before = {number: signal.signal(number, self._handle) for number in self.SIGNALS}
        return self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        sys.stderr.write("\nsaving and stopping after a few steps; interrupt again to stop at once\n")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._in_main_thread:
            for number, handler in self._before.items():
                signal.signal(number, handler)
