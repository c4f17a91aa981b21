"""Run something in a fork of this process: it costs no imports, and may be killed or crash.

This process must not have computed anything with torch or arrow before, since their threads do not survive a fork.
"""

import io
import os
import pickle
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

from ctxsim_hf.runtime.errors import UserError


@dataclass(frozen=True)
class Outcome:
    """How a child ended: `answer`, `refused`, `traceback` or `killed`."""

    how: str
    value: Any  # what it returned, or the error


class Child:
    """A fork that runs a function."""

    def __init__(self, function: Callable[[], Any]) -> None:
        reading, writing = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if not self.pid:
            os.close(reading)
            os.setsid()
            with os.fdopen(writing, "wb") as file:
                pickle.dump(_run(function), file)
            os._exit(0)
        os.close(writing)
        self._pipe = reading

    def kill(self) -> None:
        """Kill it and the processes that it started, as the system does when memory runs out."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:  # before it had a group of its own
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> Outcome:
        """Return how it ended."""
        with os.fdopen(self._pipe, "rb") as file:
            data = file.read()
        _, status = os.waitpid(self.pid, 0)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            return Outcome("killed", None)
        if not data:
            return Outcome("traceback", f"it ended with the status {status}")
        how, value = pickle.loads(data)
        return Outcome(how, value)


def _run(function: Callable[[], Any]) -> tuple[str, Any]:
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            return "answer", function()
    except UserError as error:
        return "refused", str(error)
    except BaseException:
        return "traceback", traceback.format_exc()


def run(function: Callable[[], Any]) -> Outcome:
    """Run a function in a child to its end."""
    return Child(function).wait()


def command(words: Sequence[object]) -> Callable[[], str]:
    """Return a function that runs a command line, raises its error if it ends with one, and returns what it prints."""

    def call() -> str:
        from ctxsim_hf.cli import run_verb
        from ctxsim_hf.verbs import VERBS

        said, refused = io.StringIO(), io.StringIO()
        spelled = [str(word) for word in words]
        length = 2 if " ".join(spelled[:2]) in VERBS else 1
        with redirect_stdout(said), redirect_stderr(refused):
            code = run_verb(" ".join(spelled[:length]), spelled[length:], debug=False)
        if code:
            raise UserError(refused.getvalue().splitlines()[-1])
        return said.getvalue()

    return call


def run_command(*words: object) -> float:
    """Run a command in a child, which must succeed, and return how many seconds it took."""
    start = time.monotonic()
    outcome = run(command(words))
    if outcome.how != "answer":
        raise RuntimeError(f"{' '.join(map(str, words))}: {outcome.value}")
    return time.monotonic() - start


def run_and_kill(words: Sequence[object], seconds: float, chooser: random.Random) -> Outcome:
    """Run a command and kill it at a random moment within so many seconds."""
    child = Child(command(words))
    time.sleep(chooser.uniform(0, seconds))
    child.kill()
    return child.wait()
