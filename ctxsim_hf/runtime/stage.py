"""The contract of stage folders: every stage reads folders and writes one folder.

A stage works in a folder of its own beside `<output>` (see working.py) and moves it to `<output>` when whole, so a
folder that exists is finished. `stage.json` says what made it: command, arguments, fingerprints of the inputs, package
versions, counts, a digest of every file and one of itself; no output path and no time of day (those go to stage.log),
so equal runs leave equal bytes.

A run resumes in one of two ways. A *finished shard* is a file: it is written under a temporary name and renamed, so a
shard that exists is whole and is not written again. A *checkpoint* of training is a folder inside the unfinished
folder, managed by the training loop; the stage only keeps the unfinished folder until the run is finished.
"""

import contextlib
import json
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ctxsim_hf import __version__
from ctxsim_hf.runtime.arguments import StageArguments
from ctxsim_hf.runtime.checks import ADDED_LATER, other_files
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import TEMPORARY, describe_file, explain_write_errors, seal, write_json, writing
from ctxsim_hf.runtime.record import LOG_FILE, STAGE_FILE, check_stage, read_stage
from ctxsim_hf.runtime.working import WorkingFolder


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
        self.working = WorkingFolder(arguments.output, wait=wait)
        self.output, self.folder = self.working.output, self.working.partial
        self.overwrite = arguments.overwrite
        self.recipe = {
            "command": command,
            "arguments": arguments.recorded(),
            "inputs": dict(inputs),
            "versions": {"ctxsim_hf": __version__, "python": platform.python_version()}
            | {name: version(name) for name in sorted(packages)},
        }
        self.finished = False

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.working)
            self._prepare_folder()
            stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if not self.finished:
                with contextlib.suppress(UserError):  # on a full disk, it would hide the error that ended the run
                    self.log("interrupted" if kind else "left unfinished")
        finally:
            self.working.__exit__(kind, error, traceback)

    def _prepare_folder(self) -> None:
        """Decide whether the run is finished, resumes or starts, and refuse a folder that was made differently."""
        if self.output.exists() and any(self.output.iterdir()):
            if self.overwrite:
                refuse_foreign_files(self.output)
            else:
                made_by = read_stage(self.output)
                self._refuse_difference(made_by, ("command", "arguments", "inputs"), self.output)
                self._check_finished(made_by)
                return
        resuming = self._can_resume()
        if not resuming:
            self.working.discard()
        self.folder.mkdir(exist_ok=True)
        write_json(self.folder / STAGE_FILE, self.recipe)
        self.log("resumed" if resuming else "started")

    def _check_finished(self, record: Mapping[str, Any]) -> None:
        """Refuse a finished folder that is damaged."""
        check_stage(self.output, record)
        self.finished = True

    def _can_resume(self) -> bool:
        """Return whether an equal run left the folder unfinished; refuse one that another run left."""
        # A run that failed before it wrote any output, say for a mistyped flag, does not block the next one.
        if not self.folder.exists() or not {path.name for path in self.folder.iterdir()} > {STAGE_FILE, LOG_FILE}:
            return False
        try:
            made_by = json.loads((self.folder / STAGE_FILE).read_text("utf-8"))
            # Versions matter here: no folder may be written half by one version and half by another.
            differences = self._differences(made_by, tuple(self.recipe))
        except (OSError, ValueError, AttributeError, RecursionError) as error:
            differences = [f"its {STAGE_FILE} is damaged ({error})"]
        if differences and not self.overwrite:
            raise UserError(_made_by_another_run(self.folder, differences))
        return not differences

    def _differences(self, made_by: Mapping[str, Any], keys: Sequence[str]) -> list[str]:
        ours = json.loads(json.dumps({key: self.recipe[key] for key in keys}))  # tuples become lists, as on disk
        theirs = {key: made_by.get(key) for key in keys}
        return [f"{name} was {old}, now {new}" for name, old, new in _compare("", theirs, ours)]

    def _refuse_difference(self, made_by: Mapping[str, Any], keys: Sequence[str], folder: Path) -> None:
        if differences := self._differences(made_by, keys):
            raise UserError(_made_by_another_run(folder, differences))

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
        path = self.folder / LOG_FILE
        with explain_write_errors(path), path.open("a", encoding="utf-8") as file:
            file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n")

    def finish(self, counts: Mapping[str, Any], **more: Any) -> None:
        """Record the counts, the digests and what else is given in stage.json, and move the folder to `output`."""
        self.log("finished")
        for left in self.folder.rglob(f"*{TEMPORARY}"):
            if left.is_file():  # by a process that was killed
                left.unlink(missing_ok=True)
        names = sorted(path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*") if path.is_file())
        # No log is recorded, also not those of stages inside this one, nor what other commands may replace.
        kept = [name for name in names if name not in ADDED_LATER and Path(name).name != LOG_FILE]
        files = {name: describe_file(self.folder / name) for name in kept}
        write_json(self.folder / STAGE_FILE, seal(self.recipe | more | {"counts": dict(counts), "files": files}))
        self.working.finish()
        self.finished = True


def refuse_foreign_files(folder: Path) -> None:
    """Refuse to replace a folder that holds files which no command wrote, or that no stage made."""
    try:
        record = read_stage(folder)
    except UserError as error:
        if (folder / STAGE_FILE).exists():
            raise UserError(
                f"{str(folder / STAGE_FILE)!r} is damaged, so that nothing tells what else {str(folder)!r} holds; "
                "remove the folder and run again"
            ) from error
        raise
    if foreign := list(other_files(folder, record["files"])):
        shown = ", ".join(foreign[:3]) + (f" and {len(foreign) - 3} more" if len(foreign) > 3 else "")
        raise UserError(
            f"{str(folder)!r} holds files that the command which made it did not write: {shown}; "
            "move them away before you replace it"
        )


def _made_by_another_run(folder: Path, differences: Sequence[str]) -> str:
    return (
        f"{str(folder)!r} was made by another run: {'; '.join(differences)}. "
        "Choose another --output, or replace it with --overwrite"
    )


def _compare(name: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the leaves at which two JSON values differ: their names, old and new values."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _compare(f"{name}.{key}" if name else key, old.get(key), new.get(key))
    elif old != new:
        yield name, old, new
