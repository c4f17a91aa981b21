"""Check the files of a folder against the digests that were recorded when they were written.

A digest is computed once. Files that passed are remembered in the Hugging Face cache, or where that cannot be written
in this process only, by their sizes, inodes and times of change; the system sets the last of these (ctime), so that
no program can restore it after a change. `ctxsim --verify` computes every digest again.
"""

import contextlib
import json
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import xxhash

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import cache_root, digest_file

REMEDY = "make the folder again with --overwrite"
# Nothing is made of these: a card may be edited, and a published folder has no figures of training.
NEVER_READ = frozenset({"README.md", "metrics.json", "history.json"})
# What transformers, sentence-transformers and this package load from a folder if it is there.
LOADABLE = frozenset(
    (
        ".json .jinja .py .model .safetensors .bin .pt .pth .ckpt .h5 .msgpack .onnx .gguf .npy .npz .arrow .parquet"
    ).split()
)
LOADABLE_NAMES = frozenset({"vocab.txt", "merges.txt"})
# Commands add these to a finished folder; no model is made of them.
ADDED_LATER = frozenset(
    {"stage.json", "results.json", "results.md", "results.png", "scores.npy", "thresholds.json", "weights.json"}
)
UNDER_WAY = "unfinished"  # folder in which an evaluation keeps what it has so far; nothing is loaded from it
# Folders in which only what stage.json names is ever opened: a stage that grows adds to them before it says so, and
# leaves there what readers of an older version may still hold.
GROWING = frozenset({"segments", "versions"})
SETTLED = 2.0  # seconds after which a further change must show in the time of change, on any file system

_passed: set[str] = set()  # digests of what passed in this process
_always = False


def verify_always(always: bool = True) -> None:
    """Compute every digest from now on, whether or not the files passed before."""
    global _always
    _always = always


def check_files(folder: Path, files: Mapping[str, Mapping[str, Any]], remedy: str = REMEDY) -> None:
    """Refuse a folder that lacks one of these files or in which one has changed.

    Args:
        folder (`Path`): The folder.
        files (`Mapping`): Name -> what `describe_file` returned.
        remedy (`str`): How to get good files, for the error message.
    """
    files = {name: files[name] for name in files if name not in NEVER_READ}
    for name, expected in files.items():
        _check_size(folder / name, expected["bytes"], remedy)
    check_once(folder, files, lambda: _check_digests(folder, files, remedy), remedy)


def check_once(folder: Path, recorded: Mapping[str, Any], verify: Callable[[], None], remedy: str = REMEDY) -> None:
    """Call `verify`, which raises an error for damage, unless the files passed before and have not changed since.

    Args:
        folder (`Path`): The folder of the files.
        recorded (`Mapping`): Name of each file -> what it is verified against.
        verify (`Callable`): Reads the files.
        remedy (`str`): How to get good files, for the error message.
    """
    states = {name: file_state(folder / name, remedy) for name in recorded}
    seen = {name: (s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for name, s in states.items()}
    key = xxhash.xxh3_128_hexdigest(json.dumps([str(folder.resolve()), recorded, seen], sort_keys=True).encode())
    if not _always and (key in _passed or _is_remembered(key)):
        _passed.add(key)
        return
    verify()
    # A file may change again within one tick of the clock, without a new time of change.
    if time.time() - max((state.st_ctime for state in states.values()), default=0) > SETTLED:
        _passed.add(key)
        _remember(key)


def verify_files(folder: str | Path, record: Mapping[str, Any]) -> None:
    """Compute the digests of all files of a stage; refuse a folder whose files changed since they were written."""
    for name, expected in record["files"].items():
        _check_size(Path(folder) / name, expected["bytes"], REMEDY)
    _check_digests(Path(folder), record["files"], REMEDY)


def refuse_loadable_files(folder: Path, files: Collection[str]) -> None:
    """Refuse a folder with other files than these, if a library could load them in place of its own."""
    for name in other_files(folder, files):
        path = Path(name)
        if path.suffix.lower() in LOADABLE or path.name in LOADABLE_NAMES or (folder / path).is_dir():
            raise UserError(
                f"{str(folder / name)!r} was not written by the command that made {str(folder)!r}, and might be "
                "loaded as a part of it; move it away"
            )


def other_files(folder: Path, files: Collection[str]) -> Iterator[str]:
    """Yield the names of files, and of links to folders, that are neither these nor what commands add later. Hidden
    ones, logs and other versions of what grows are left out."""
    growing = GROWING & {name.partition("/")[0] for name in files}
    for place, folders, names in os.walk(folder):
        top = growing if Path(place) == folder else frozenset()
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in top)
        links = [name for name in folders if Path(place, name).is_symlink()]
        for name in sorted([*names, *links]):
            found = Path(place, name).relative_to(folder).as_posix()
            if found.startswith(f"{UNDER_WAY}/"):
                continue
            if found not in files and found not in ADDED_LATER and not name.startswith(".") and name != "stage.log":
                yield found


def file_state(path: Path, remedy: str = REMEDY) -> os.stat_result:
    """Return the state of a file; refuse one that is missing."""
    try:
        return path.stat()
    except FileNotFoundError:
        raise UserError(f"{str(path)!r} is missing; {remedy}") from None
    except OSError as error:
        raise UserError(f"cannot read {str(path)!r}: {error.strerror}") from error


def _check_size(path: Path, size: int, remedy: str) -> None:
    if (found := file_state(path, remedy).st_size) != size:
        raise UserError(f"{str(path)!r} is damaged: expected {size} bytes, found {found}; {remedy}")


def _check_digests(folder: Path, files: Mapping[str, Mapping[str, Any]], remedy: str) -> None:
    for name, expected in files.items():
        try:
            found = digest_file(folder / name)
        except OSError as error:
            raise UserError(f"cannot read {str(folder / name)!r}: {error.strerror}") from error
        if found != expected["xxh3_128"]:
            raise UserError(f"{str(folder / name)!r} is damaged: its content changed; {remedy}")


def _is_remembered(key: str) -> bool:
    with contextlib.suppress(OSError):
        return (cache_root() / "verified" / key).exists()
    return False


def _remember(key: str) -> None:
    with contextlib.suppress(OSError):  # without it, the digests are only computed again
        marker = cache_root() / "verified" / key
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
