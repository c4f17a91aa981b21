"""Pipes and standard input -> temporary files, for what is read more than once, such as a corpus."""

import contextlib
import re
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from ctxsim_hf.text.lines import STDIN, is_pipe, open_input
from ctxsim_hf.text.rows import ENDINGS_PATTERN

_HEAD = 1 << 16  # bytes that show what a pipe holds


@contextlib.contextmanager
def keep_pipes(names: Sequence[str]) -> Iterator[list[str]]:
    """Yield the names with each pipe copied into a temporary file, which is removed at the end.

    The file is called `stdin`, or as the pipe is, with an ending that says what it holds.
    """
    with contextlib.ExitStack() as stack:
        kept = []
        for name in names:
            if is_pipe(name):
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ctxsim-")))
                name = str(_copy(name, folder))
            kept.append(name)
        yield kept


def _copy(name: str, folder: Path) -> Path:
    with open_input(name) as stream:
        head = stream.read(_HEAD)
        own = "stdin" if name in (STDIN, "/dev/stdin", "/dev/fd/0") else Path(name).name
        path = folder / (own if re.search(ENDINGS_PATTERN, own) else own + ending_of(head))
        with path.open("wb") as file:
            file.write(head)
            shutil.copyfileobj(stream, file)
    return path


def ending_of(head: bytes) -> str:
    """Return the ending of a file name that suits the first bytes of a file."""
    if head.startswith(b"PAR1"):
        return ".parquet"
    if head.startswith(b"\x1f\x8b"):
        return f"{_ending_of_text(zlib.decompressobj(31).decompress(head, _HEAD))}.gz"
    return _ending_of_text(head)


def _ending_of_text(head: bytes) -> str:
    return ".jsonl" if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{") else ".txt"
