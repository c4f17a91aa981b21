"""The contract of stage folders: every stage reads folders and writes one folder.

A stage works in `<output>.partial` and renames it to `<output>` when whole, so a folder that exists is finished.
`stage.json` says what made it: command, arguments, fingerprints of the inputs, package versions, counts and a digest
of every file; no output path and no time of day (those go to stage.log), so equal runs leave equal bytes.

A run resumes in one of two ways. A *finished shard* is a file: it is written under a temporary name and renamed, so a
shard that exists is whole and is not written again. A *checkpoint* of training is a folder inside the partial folder,
managed by the training loop; the stage only keeps the partial folder until the run is finished.
"""

import contextlib
import json
import platform
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import filelock
import xxhash

from ctxsim_hf import __version__
from ctxsim_hf.runtime.arguments import StageArguments
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import cache_root, describe_file, digest_file, write_json, writing

STAGE_FILE = "stage.json"
LOG_FILE = "stage.log"


class Stage:
    """One run of one stage into one folder, as a context manager.

    Args:
        command (`str`): The verb, e.g. `chunk`.
        arguments (`StageArguments`): The flags of this run; those that shape the output are recorded.
        inputs (`Mapping[str, Any]`): JSON-ready description of the inputs, with their fingerprints.
        packages (`Sequence[str]`): Distributions whose version may change the output.
        wait (`bool`): Wait while another run holds the folder, instead of refusing.

    After entering, `finished` says whether an equal run has completed `output` before, so that there is nothing to do.
    Otherwise write files with `writing`, ask `has` which files exist already, and end with `finish`.
    """

    def __init__(
        self,
        command: str,
        arguments: StageArguments,
        inputs: Mapping[str, Any],
        packages: Sequence[str] = (),
        wait: bool = False,
    ) -> None:
        self.output = Path(arguments.output)
        self.folder = self.output.with_name(self.output.name + ".partial")
        self.overwrite = arguments.overwrite
        self.recipe = {
            "command": command,
            "arguments": arguments.recorded(),
            "inputs": dict(inputs),
            "versions": {"ctxsim_hf": __version__, "python": platform.python_version()}
            | {name: version(name) for name in sorted(packages)},
        }
        self.finished = False
        self._lock_timeout = -1 if wait else 0
        self._lock = filelock.FileLock(self.output.with_name(self.output.name + ".lock"))

    def __enter__(self) -> Self:
        _make_folder(self.output.parent)
        try:
            self._lock.acquire(timeout=self._lock_timeout)
        except filelock.Timeout:
            raise UserError(
                f"another run is writing into {str(self.output)!r}; wait for it or stop it first"
            ) from None
        try:
            self._prepare_folder()
        except BaseException:
            self._release_lock()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self.finished:
            self.log("interrupted" if kind else "left unfinished")
        self._release_lock()

    def _prepare_folder(self) -> None:
        """Decide whether the run is finished, resumes or starts, and refuse a folder that was made differently."""
        # A run that failed before it wrote any output, say for a mistyped flag, does not block the next one.
        resuming = self.folder.exists() and {path.name for path in self.folder.iterdir()} > {STAGE_FILE, LOG_FILE}
        if self.output.exists() and any(self.output.iterdir()):
            made_by = read_stage(self.output)  # refuses a folder that no stage made, which is never deleted
            if not self.overwrite:
                self._refuse_difference(made_by, ("command", "arguments", "inputs"), self.output)
                self.finished = True
                return
        if resuming:
            made_by = json.loads((self.folder / STAGE_FILE).read_text("utf-8"))
            # Versions matter here: no folder may be written half by one version and half by another.
            if not self.overwrite:
                self._refuse_difference(made_by, tuple(self.recipe), self.folder)
            resuming = not self._differences(made_by, tuple(self.recipe))
        if self.folder.exists() and not resuming:
            shutil.rmtree(self.folder)
        _make_folder(self.folder)
        write_json(self.folder / STAGE_FILE, self.recipe)
        self.log("resumed" if resuming else "started")

    def _differences(self, made_by: Mapping[str, Any], keys: Sequence[str]) -> list[str]:
        ours = json.loads(json.dumps({key: self.recipe[key] for key in keys}))  # tuples become lists, as on disk
        theirs = {key: made_by.get(key) for key in keys}
        return [f"{name} was {old}, now {new}" for name, old, new in _compare("", theirs, ours)]

    def _refuse_difference(self, made_by: Mapping[str, Any], keys: Sequence[str], folder: Path) -> None:
        if differences := self._differences(made_by, keys):
            raise UserError(
                f"{str(folder)!r} was made by another run: {'; '.join(differences)}. "
                "Choose another --output, or replace it with --overwrite"
            )

    def has(self, name: str) -> bool:
        """Return whether the file `name` is finished."""
        return (self.folder / name).exists()

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        """Yield a temporary path for the file `name`, which is renamed if the block succeeds."""
        with writing(self.folder / name) as path:
            yield path

    def log(self, line: str) -> None:
        """Append a line with the time to stage.log, the only file that differs between equal runs."""
        with (self.folder / LOG_FILE).open("a", encoding="utf-8") as file:
            file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n")

    def finish(self, counts: Mapping[str, Any]) -> None:
        """Record the counts and digests in stage.json and rename the folder to `output`."""
        self.log("finished")
        for path in self.folder.rglob("*.tmp"):
            if path.is_file():  # left by a process that was killed
                path.unlink(missing_ok=True)
        names = sorted(path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*") if path.is_file())
        # No log is recorded, also not those of stages inside this one.
        kept = [name for name in names if name != STAGE_FILE and Path(name).name != LOG_FILE]
        files = {name: describe_file(self.folder / name) for name in kept}
        write_json(self.folder / STAGE_FILE, self.recipe | {"counts": dict(counts), "files": files})
        replaced = self.output.with_name(self.output.name + ".replaced")
        if self.output.exists():
            shutil.rmtree(replaced, ignore_errors=True)
            self.output.rename(replaced)
        self.folder.rename(self.output)
        shutil.rmtree(replaced, ignore_errors=True)
        self.finished = True

    def _release_lock(self) -> None:
        # Delete the file while the lock is held: afterwards it might belong to another run.
        Path(self._lock.lock_file).unlink(missing_ok=True)
        self._lock.release()


def read_stage(folder: str | Path, *commands: str) -> dict[str, Any]:
    """Return the stage.json of a finished folder.

    Args:
        folder (`str` or `Path`): The folder.
        commands (`str`): Commands, one of which must have made the folder; error messages name the first. None given:
            any command will do.
    """
    folder = Path(folder)
    wanted = f"a folder made by `ctxsim {commands[0]}`" if commands else "a folder made by a ctxsim command"
    path = folder / STAGE_FILE
    if not path.exists():
        refuse_unfinished(folder)
        what = "has no stage.json" if folder.exists() else "does not exist"
        raise UserError(f"expected {wanted}, but {str(folder)!r} {what}")
    try:
        record: dict[str, Any] = json.loads(path.read_text("utf-8"))
        made_by = record["command"]
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{str(path)!r} is damaged ({error}); make the folder again with --overwrite") from None
    if commands and made_by not in commands:
        raise UserError(f"expected {wanted}, but {str(folder)!r} was made by `ctxsim {made_by}`")
    return record


def refuse_unfinished(folder: str | Path) -> None:
    """Refuse a folder that an interrupted run left unfinished."""
    if Path(f"{folder}.partial").is_dir():
        raise UserError(f"{str(folder)!r} is not finished yet; run the command that makes it again to resume")


def verify_files(folder: str | Path, record: Mapping[str, Any], digests: bool = True) -> None:
    """Refuse a stage folder whose files changed since they were written.

    Args:
        folder (`str` or `Path`): The folder.
        record (`Mapping[str, Any]`): Its stage.json.
        digests (`bool`): Whether to compare digests too, which reads every byte, and not only sizes.
    """
    for name, expected in record["files"].items():
        path = Path(folder) / name
        if not path.exists():
            raise UserError(f"{str(path)!r} is missing; make the folder again with --overwrite")
        if path.stat().st_size != expected["bytes"]:
            found = path.stat().st_size
            raise UserError(
                f"{str(path)!r} is damaged: expected {expected['bytes']} bytes, found {found}; "
                "make the folder again with --overwrite"
            )
        if digests and digest_file(path) != expected["xxh3_128"]:
            raise UserError(f"{str(path)!r} is damaged: its content changed; make the folder again with --overwrite")


def verify_files_once(folder: str | Path, record: Mapping[str, Any]) -> None:
    """Verify the digests of a folder, unless the same files passed before: a folder of gigabytes then opens quickly.

    Files that passed are remembered in the Hugging Face cache by their sizes and modification times.
    """
    verify_files(folder, record, digests=False)
    states = [(name, (Path(folder) / name).stat()) for name in sorted(record["files"])]
    seen = [str(Path(folder).resolve()), record["files"]] + [[n, s.st_ino, s.st_mtime_ns] for n, s in states]
    marker = cache_root() / "verified" / xxhash.xxh3_128_hexdigest(json.dumps(seen).encode())
    if not marker.exists():
        verify_files(folder, record)
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()


def describe_stage(folder: str | Path, *commands: str) -> dict[str, Any]:
    """Describe a folder for the stage.json of a stage that reads it: one digest for all of its files (stage.json holds
    the digest of each) and what it was made from. Its path is left out, since a folder may be moved."""
    record = read_stage(folder, *commands)
    return {"xxh3_128": digest_file(Path(folder) / STAGE_FILE), "inputs": record["inputs"]}


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {str(folder)!r}: {error.strerror}") from error


def _compare(name: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the leaves at which two JSON values differ: their names, old and new values."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _compare(f"{name}.{key}" if name else key, old.get(key), new.get(key))
    elif old != new:
        yield name, old, new
