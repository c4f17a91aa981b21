"""Ctrl-C and SIGTERM -> a wish to stop, granted after the step in hand."""

import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Self


class Interruption:
    """While inside, the first signal only sets `came`; a second one interrupts at once."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.came = False

    def __enter__(self) -> Self:
        # Python allows handlers in the main thread only; elsewhere (a notebook's worker) signals stay as they are.
        self._here = threading.current_thread() is threading.main_thread()
        if self._here:
            self._before = {number: signal.signal(number, self._handle) for number in self.SIGNALS}
        return self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.came:
            raise KeyboardInterrupt
        self.came = True
        sys.stderr.write("\nstopping after a few steps, once they are saved; again to stop at once\n")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._here:
            for number, handler in self._before.items():
                signal.signal(number, handler)
