"""A text file, a pipe or standard input -> its lines, in constant memory.

A file is read as often as needed. A pipe can be read only once, and so can what it was turned into here.
"""

import contextlib
import json
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from ctxsim_hf.runtime.errors import UserError

STDIN = "-"
MAX_LINE_BYTES = 100_000_000  # a line without end would fill the memory
_BLOCK = 1 << 20


def is_pipe(name: str) -> bool:
    """Return whether a name stands for something that can be read only once: standard input or a named pipe."""
    if name == STDIN:
        return True
    path = Path(name)
    return path.exists() and not path.is_dir() and not stat.S_ISREG(path.stat().st_mode)


@contextlib.contextmanager
def open_input(name: str) -> Iterator[IO[bytes]]:
    """Open a file, a pipe, or standard input for the name `-`; a `UserError` says what cannot be read."""
    try:
        if name == STDIN:
            yield sys.stdin.buffer
            return
        with Path(name).open("rb") as file:
            yield file
    except OSError as error:
        raise UserError(f"cannot read {name!r}: {error.strerror or error}") from error


def bounded_lines(stream: IO[bytes], max_bytes: int) -> Iterator[bytes | None]:
    """Yield the lines of a stream with their ends, and None for one of more than `max_bytes`, which is skipped."""
    while line := stream.readline(max_bytes + 1):
        if len(line) <= max_bytes or line.endswith(b"\n"):
            yield line
            continue
        yield None
        while (rest := stream.readline(_BLOCK)) and not rest.endswith(b"\n"):
            pass


def open_lines(name: str) -> Iterable[str]:
    """Return the lines of a text file, which know their number, or those of a pipe, which can be read once."""
    return _read(name) if is_pipe(name) else Lines(name)


class Lines:
    """The lines of a text file, which are counted at once and read lazily."""

    def __init__(self, name: str) -> None:
        self.name = name
        ends, last = 0, b"\n"
        with open_input(name) as file:
            while block := file.read(_BLOCK):
                ends, last = ends + block.count(b"\n"), block[-1:]
        self.number = ends + (last != b"\n")

    def __len__(self) -> int:
        return self.number

    def __iter__(self) -> Iterator[str]:
        return _read(self.name)


def is_json_object(line: str) -> bool:
    """Return whether a line is that of a JSON Lines file, and so no sentence."""
    if not line.lstrip().startswith("{"):
        return False
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _read(name: str) -> Iterator[str]:
    with open_input(name) as file:
        for number, line in enumerate(bounded_lines(file, MAX_LINE_BYTES), 1):
            place = f"{name!r}, line {number}"
            if line is None:
                raise UserError(f"{place}: expected a sentence, but the line has more than {MAX_LINE_BYTES:,} bytes")
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise UserError(f"{place}: expected UTF-8, {error.reason}") from error
            if is_json_object(text):
                raise UserError(
                    f"{place}: expected plain text, found a JSON object; pass text, or give documents in a file whose "
                    "name ends in .jsonl"
                )
            yield text.removesuffix("\n").removesuffix("\r")
