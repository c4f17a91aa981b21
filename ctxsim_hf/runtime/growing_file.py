"""A file to which parts are appended, with a digest of what was appended: an interrupted run resumes only what is
still as it was written."""

import os
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import xxhash

BLOCK = 1 << 20


class GrowingFile:
    """The part of a file from `start` on, opened for writing as a context manager.

    Args:
        path (`Path`): The file.
        start (`int`): Where the appended part begins; what comes before is left alone.
        read_only (`bool`): Only `resume` will be called.
    """

    def __init__(self, path: Path, start: int = 0, read_only: bool = False) -> None:
        self.path, self.start, self.read_only = path, start, read_only
        self._size, self._digest = 0, xxhash.xxh3_128()

    def __enter__(self) -> Self:
        if self.read_only:
            self._file: IO[bytes] = self.path.open("rb")
        else:
            self._file = os.fdopen(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()

    @property
    def end(self) -> int:
        """Where the appended part ends."""
        return self.start + self._size

    def resume(self, described: Any) -> bool:
        """Go on after a part that `describe` described; return False if it is not in the file as it was."""
        self._file.seek(self.start)
        digest, left = xxhash.xxh3_128(), described["bytes"]
        while left and (block := self._file.read(min(left, BLOCK))):
            digest.update(block)
            left -= len(block)
        if left or digest.hexdigest() != described["xxh3_128"]:
            return False
        self._size, self._digest = described["bytes"], digest
        return True

    def restart(self) -> None:
        """Forget what was resumed."""
        self._size, self._digest = 0, xxhash.xxh3_128()

    def cut(self) -> None:
        """Remove what follows the part that counts, such as half of a part that a killed process wrote."""
        self._file.truncate(self.end)
        self._file.seek(0, os.SEEK_END)

    def append(self, data: Any) -> None:
        """Append data and flush it to disk, so that it survives a power failure."""
        self._file.write(data)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._digest.update(data)
        self._size += memoryview(data).nbytes

    def write_start(self, data: bytes) -> None:
        """Write what comes before the appended part."""
        self._file.seek(0)
        self._file.write(data)
        self._file.flush()
        os.fsync(self._file.fileno())

    def describe(self) -> dict[str, Any]:
        """Return the size and the digest of what was appended."""
        return {"bytes": self._size, "xxh3_128": self._digest.hexdigest()}
