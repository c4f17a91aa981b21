"""Folders in the Hugging Face cache that are made once of what they are named by."""

import contextlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import filelock
import xxhash

from ctxsim_hf.runtime.checks import check_files
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import (
    cache_root,
    describe_file,
    hugging_face_cache,
    read_sealed,
    seal,
    whole_folder,
    write_json,
)

DIGESTS = "digests.json"


def cached_folder(kind: str, made_from: Any, build: Callable[[Path], None]) -> Path:
    """Return a folder of the cache, calling `build` to fill it if it does not exist yet or is damaged.

    Args:
        kind (`str`): What the folder holds, e.g. `words`; its parent in the cache has this name.
        made_from (`Any`): JSON-ready description of everything that shapes the content.
        build (`Callable[[Path], None]`): Fills an empty folder, while other processes wait.
    """
    name = Path(kind, xxhash.xxh3_128_hexdigest(json.dumps(made_from, sort_keys=True).encode()))
    if _is_sound(folder := hugging_face_cache() / name):  # even where the cache is read-only
        return folder
    folder = cache_root() / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(f"{folder}.lock"):
        if not _is_sound(folder):
            shutil.rmtree(folder, ignore_errors=True)
            with whole_folder(folder) as temporary:
                build(temporary)
                write_digests(temporary)
    return folder


def write_digests(folder: Path) -> None:
    """Record the digests of all files of a folder in it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    write_json(
        folder / DIGESTS, seal({"files": {path.relative_to(folder).as_posix(): describe_file(path) for path in files}})
    )


def check_digests(folder: Path, remedy: str) -> None:
    """Refuse a folder whose files are not those whose digests were recorded in it."""
    recorded = read_sealed(folder / DIGESTS, remedy)
    if "files" not in recorded:
        raise UserError(f"{str(folder / DIGESTS)!r} is missing; {remedy}")
    check_files(folder, recorded["files"], remedy)


def _is_sound(folder: Path) -> bool:
    with contextlib.suppress(UserError):
        check_digests(folder, "it will be made again")
        return True
    return False
