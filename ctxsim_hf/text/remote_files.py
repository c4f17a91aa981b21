"""Find and open the files of a corpus at a URL that fsspec knows, such as s3://, gs:// or hf://."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.rows import ENDINGS, ENDINGS_PATTERN


def is_url(location: str) -> bool:
    """Return whether a location is a URL and not a path."""
    return re.match(r"[a-z][a-z0-9+.-]+://", location) is not None


@dataclass(frozen=True)
class RemoteFile:
    """A file at a URL. It has what reading needs of a `Path`."""

    url: str
    inside: str  # its path within the corpus, or its name
    in_folder: bool  # or it is the whole corpus
    size: int

    def __str__(self) -> str:
        return self.url

    @property
    def suffixes(self) -> list[str]:
        return PurePosixPath(self.inside).suffixes

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.inside).suffix

    def open(self, mode: str) -> IO[bytes]:
        """Open the file, to be read in order."""
        fs, path = _file_system(self.url)
        stream: IO[bytes] = fs.open(path, mode)
        return stream

    def version(self) -> str:
        """Return what changes when the content does, as far as the file system tells without sending the content."""
        fs, path = _file_system(self.url)
        return str(fs.ukey(path))


def remote_name(url: str) -> str:
    """Return the name of a file or folder at a URL."""
    return PurePosixPath(url.rstrip("/")).name


def find_remote_files(url: str) -> list[RemoteFile]:
    """Return the file at a URL, or the files of a folder that can be read, sorted; refuse a URL without any."""
    fs, base = _file_system(url)
    try:
        found: Mapping[str, Any] = fs.find(base, detail=True)
    except Exception as error:  # each file system raises its own types, all with a readable message
        raise UserError(f"cannot list {url!r}: {str(error) or type(error).__name__}") from error
    files = []
    for name, info in sorted(found.items()):
        if re.search(ENDINGS_PATTERN, name):
            inside = name[len(base) :].lstrip("/")  # nothing if the URL is that of a file
            files.append(RemoteFile(fs.unstrip_protocol(name), inside or remote_name(url), bool(inside), info["size"]))
    if not files:
        raise UserError(f"no file to read at {url!r}: expected file names that end in {', '.join(ENDINGS)}")
    return files


def _file_system(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path there."""
    import fsspec

    try:
        fs, path = fsspec.url_to_fs(url)
    except (ImportError, ValueError) as error:  # a package that is not installed, or an unknown protocol
        raise UserError(f"cannot open {url!r}: {error}") from error
    return fs, path.rstrip("/")
