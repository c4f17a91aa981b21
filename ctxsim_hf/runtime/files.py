"""Files and folders that are whole or absent, and the folder of what can be made again."""

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
    """Yield a temporary path beside `path`, renamed to it when the block ends well, removed otherwise.

    Args:
        path (`Path`): The file.
        shared (`bool`): Other processes may be writing it at the same time; the last to end is the one that stays.
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
    """Yield a temporary folder beside `path`, renamed to it when the block ends well, removed otherwise.

    A folder that exists is therefore whole. What a killed process left of the temporary folder is removed first, so
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
    """Return the cached folder of what `build` makes, calling it if nobody has done so yet.

    Args:
        kind (`str`): What the folder holds, e.g. `words`; its parent in the cache has this name.
        made_from (`Any`): JSON-ready description of everything that shapes the content.
        build (`Callable[[Path], None]`): Fill an empty folder. Other processes wait for it meanwhile.
    """
    name = Path(kind, xxhash.xxh3_128_hexdigest(json.dumps(made_from, sort_keys=True).encode()))
    if (folder := _hugging_face_cache() / name).exists():  # perhaps in a cache that cannot be written
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
    """Return the folder for what can be made again: `ctxsim` in the Hugging Face cache, or a temporary folder of this
    process where that cannot be written, as in a read-only container."""
    root = _hugging_face_cache()
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root):
            return root
    except OSError as error:
        temporary = tempfile.mkdtemp(prefix="ctxsim-")
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        logger.warning(
            f"cannot write into {str(root)!r} ({error.strerror}), so what is kept there is made again by every "
            "process; set HF_HOME to a folder that can be written"
        )
        return Path(temporary)


def write_json(path: Path, value: Any) -> None:
    """Write JSON in one fixed form, so that equal values are equal bytes."""
    with writing(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True) + "\n", "utf-8")


def read_json(path: Path) -> Any:
    """Return what a JSON file says, an empty dictionary if there is no such file."""
    try:
        return json.loads(path.read_text("utf-8")) if path.exists() else {}
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{str(path)!r} is damaged: {error}") from error


def describe_file(path: Path) -> dict[str, Any]:
    """Return the size and the digest of a file, as stage.json records them."""
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
    """Wait until a file is on disk: a power cut must not leave one that is renamed but empty."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _could_not_write(path: Path, error: OSError) -> UserError:
    return UserError(
        f"could not write {str(path)!r}: {error.strerror or error}. What was finished is kept: "
        "fix this and run the same command again to go on"
    )
