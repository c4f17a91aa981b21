"""Atomic files and folders, which are either whole or absent, and the cache folder."""

import atexit
import contextlib
import json
import logging
import os
import re
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

import xxhash
from huggingface_hub import constants

from ctxsim_hf.runtime.errors import UserError

logger = logging.getLogger(__name__)

TEMPORARY = ".ctxsim-tmp"  # ends the name of a file or folder that is being written
SEAL = "xxh3_128"  # the key of a digest of the other entries
_many_writers: ContextVar[bool] = ContextVar("many_writers", default=False)


@contextlib.contextmanager
def many_writers() -> Iterator[None]:
    """Let other processes write the same files as this one, on this machine or others, while the block runs.

    A scheduler may start a task again while one that it has lost goes on writing.
    """
    token = _many_writers.set(True)
    try:
        yield
    finally:
        _many_writers.reset(token)


@contextlib.contextmanager
def writing(path: Path, *, shared: bool = False) -> Iterator[Path]:
    """Yield a temporary path beside `path`, renamed to `path` if the block succeeds, removed otherwise.

    Args:
        path (`Path`): The file to write.
        shared (`bool`): Whether others, threads or processes, may write the file at the same time; the last to finish
            wins.
    """
    owner = f".{socket.gethostname()}-{os.getpid()}-{threading.get_ident()}" if shared or _many_writers.get() else ""
    temporary = path.with_name(f".{path.name}{owner}{TEMPORARY}")
    try:
        with explain_write_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            _flush(temporary)
            temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `path`, renamed to `path` if the block succeeds, removed otherwise.

    A folder that exists is therefore whole. A temporary folder that a killed process left behind is removed first, so
    only one process at a time may write `path`.
    """
    temporary = path.with_name(f".{path.name}{TEMPORARY}")
    try:
        with explain_write_errors(path):
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir(parents=True)
            yield temporary
            for file in temporary.rglob("*"):
                if file.is_file():
                    _flush(file)
            temporary.rename(path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


@contextlib.contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
    """Turn the error of a library that could not write into `path`, as on a full disk, into a `UserError`."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        if (reason := _write_error(error)) is None:
            raise
        raise UserError(
            f"could not write {str(path)!r}: {reason}. What was finished is kept: "
            "fix this and run the same command again to resume"
        ) from error


def move_folder(source: Path, target: Path) -> None:
    """Move a whole folder to its place on the same file system, flushed to disk first."""
    for file in source.rglob("*"):
        if file.is_file():
            _flush(file)
    target.parent.mkdir(parents=True, exist_ok=True)
    source.rename(target)


@cache
def cache_root() -> Path:
    """Return the cache folder: `ctxsim` in the Hugging Face cache, or a temporary folder of this process if that is
    read-only, as it may be in a container."""
    root = hugging_face_cache()
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root):
            return root
    except OSError as error:
        temporary = tempfile.mkdtemp(prefix="ctxsim-")
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        logger.warning(
            f"cannot write to the cache {str(root)!r} ({error.strerror}), so every process builds its own; "
            "set HF_HOME to a writable folder"
        )
        return Path(temporary)


def datasets_cache() -> str | None:
    """Return where the library `datasets` can keep files; None if that is its own cache."""
    root = cache_root()
    return None if root == hugging_face_cache() else str(root / "datasets")


def write_json(path: Path, value: Any) -> None:
    """Write JSON in one fixed form, so that equal values give equal bytes."""
    with writing(path) as temporary:
        temporary.write_text(
            json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True) + "\n", "utf-8", "backslashreplace"
        )


def read_json(path: Path) -> Any:
    """Return the content of a JSON file, or an empty dictionary if there is no such file."""
    try:
        return json.loads(path.read_text("utf-8")) if path.exists() else {}
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{str(path)!r} is damaged: {error}; restore it, or make its folder again") from error


def seal(value: Mapping[str, Any]) -> dict[str, Any]:
    """Add a digest of all entries to them, so that damage is noticed when they are read."""
    value = json.loads(json.dumps(value))  # as it will be read
    return {**value, SEAL: _digest_value(value)}


def parse_sealed(text: str) -> dict[str, Any]:
    """Parse a JSON object; raise a ValueError if its digest does not hold. One without a digest is taken as it is."""
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")
    if SEAL in value and _digest_value({key: value[key] for key in value if key != SEAL}) != value[SEAL]:
        raise ValueError("its content changed")
    return value


def read_sealed(path: Path, remedy: str) -> dict[str, Any]:
    """Return the entries of a JSON file that were sealed, or an empty dictionary if there is no such file. One that
    was not sealed is damaged.

    Args:
        path (`Path`): The file.
        remedy (`str`): How to get a good file, for the error message.
    """
    try:
        value = parse_sealed(path.read_text("utf-8"))
        if SEAL not in value:
            raise ValueError("it has no digest")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{str(path)!r} is damaged: {error}; {remedy}") from error
    return {key: value[key] for key in value if key != SEAL}


def describe_file(path: Path) -> dict[str, Any]:
    """Return the size and the digest of a file, for stage.json."""
    return {"bytes": path.stat().st_size, "xxh3_128": digest_file(path)}


def digest_file(path: Path) -> str:
    """Return the XXH3 digest of a file's bytes."""
    digest = xxhash.xxh3_128()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def hugging_face_cache() -> Path:
    """Return the cache folder in the Hugging Face cache, which may be read-only."""
    return Path(constants.HF_HOME) / "ctxsim"


def _digest_value(value: Mapping[str, Any]) -> str:
    return xxhash.xxh3_128_hexdigest(json.dumps(value, sort_keys=True).encode())


def _flush(path: Path) -> None:
    """Flush a file to disk, so that a power cut cannot leave it renamed but empty."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _write_error(error: Exception) -> str | None:
    """Return why a file could not be written, or None for an error that is about something else."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if system := re.search(r"([^:]+) \(os error \d+\)", str(error)):  # raised by safetensors or tokenizers
        return system[1].strip()
    if "inline_container" in str(error):  # torch does not say what the system said
        return "torch failed in the middle of a file, as it does on a full disk"
    return None
