"""Atomic files and folders, which are either whole or absent, and the cache folder."""

import atexit
import contextlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import filelock
import xxhash
from huggingface_hub import constants

from ctxsim_hf.runtime.errors import UserError

logger = logging.getLogger(__name__)


@contextlib.contextmanager
def writing(path: Path, *, shared: bool = False) -> Iterator[Path]:
    """Yield a temporary path beside `path`, renamed to `path` if the block succeeds, removed otherwise.

    Args:
        path (`Path`): The file to write.
        shared (`bool`): Whether other processes may write the file at the same time; the last to finish wins.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp" if shared else f"{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        _flush(temporary)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise _could_not_write(path, error) from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `path`, renamed to `path` if the block succeeds, removed otherwise.

    A folder that exists is therefore whole. A temporary folder that a killed process left behind is removed first, so
    only one process at a time may write `path`.
    """
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                _flush(file)
        temporary.rename(path)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise _could_not_write(path, error) from error
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def cached_folder(kind: str, made_from: Any, build: Callable[[Path], None]) -> Path:
    """Return a folder of the cache, calling `build` to fill it if it does not exist yet.

    Args:
        kind (`str`): What the folder holds, e.g. `words`; its parent in the cache has this name.
        made_from (`Any`): JSON-ready description of everything that shapes the content.
        build (`Callable[[Path], None]`): Fills an empty folder, while other processes wait.
    """
    name = Path(kind, xxhash.xxh3_128_hexdigest(json.dumps(made_from, sort_keys=True).encode()))
    if (folder := _hugging_face_cache() / name).exists():  # even where the cache is read-only
        return folder
    folder = cache_root() / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(f"{folder}.lock"):
        if not folder.exists():
            with whole_folder(folder) as temporary:
                build(temporary)
    return folder


@cache
def cache_root() -> Path:
    """Return the cache folder: `ctxsim` in the Hugging Face cache, or a temporary folder of this process if that is
    read-only, as it may be in a container."""
    root = _hugging_face_cache()
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
        raise UserError(f"{str(path)!r} is damaged: {error}") from error


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


def _hugging_face_cache() -> Path:
    return Path(constants.HF_HOME) / "ctxsim"


def _flush(path: Path) -> None:
    """Flush a file to disk, so that a power cut cannot leave it renamed but empty."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _could_not_write(path: Path, error: OSError) -> UserError:
    return UserError(
        f"could not write {str(path)!r}: {error.strerror or error}. What was finished is kept: "
        "fix this and run the same command again to resume"
    )
