"""The working folder of an output, `<output>.ctxsim-partial`: all that a command keeps beside what it writes.

    ctxsim-working-folder   the mark that the folder is ours: without it, nothing is deleted or overwritten
    lock                    held while a command writes the output, so that a second one is refused
    output                  what is being written; it is moved to its place when it is whole
    replaced                what --overwrite replaces, kept until the new one is in its place

It is removed with the last of these, so an interrupted run leaves it and a finished one does not.
"""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import filelock

from ctxsim_hf.runtime.errors import UserError

SUFFIX = ".ctxsim-partial"
MARK, LOCK = "ctxsim-working-folder", "lock"
ABOUT = "Unfinished output of a ctxsim command: run the same command again to resume it, or delete this folder.\n"
ATTEMPTS = 10  # at a lock whose folder another run removes at this moment


class WorkingFolder:
    """The right to write one output, a file or a folder, as a context manager.

    Args:
        output (`str` or `Path`): What will be written. A link is followed.
        what (`str`): What the output is, for the error message if the path cannot be one.
        wait (`bool`): Whether to wait for another run that writes the output instead of being refused.
    """

    def __init__(self, output: str | Path, what: str = "a folder", wait: bool = False) -> None:
        self.output = _checked(output, what)
        self.path = self.output.with_name(self.output.name + SUFFIX)
        self.partial, self._replaced = self.path / "output", self.path / "replaced"
        self._lock, self._timeout = filelock.FileLock(self.path / LOCK), -1 if wait else 0

    def __enter__(self) -> Self:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                make_marked_folder(self.path)
                self._lock.acquire(timeout=self._timeout)
                make_marked_folder(self.path)  # a run that just ended may have removed the mark before we had the lock
                self._restore()
                return self
            except filelock.Timeout:
                break
            except OSError as error:
                self._lock.release()
                if isinstance(error, FileNotFoundError) and attempt < ATTEMPTS:
                    continue  # a run that just ended has removed the folder
                raise UserError(f"cannot make the folder {str(self.path)!r}: {error.strerror}") from error
            except BaseException:
                self._lock.release()
                raise
        raise UserError(f"another run is writing into {str(self.output)!r}; wait for it or stop it first")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # All of this while the lock is held: afterwards the files might belong to another run.
        is_left = self.partial.exists() or self._replaced.exists()
        if not is_left:
            (self.path / MARK).unlink(missing_ok=True)
        (self.path / LOCK).unlink(missing_ok=True)
        if not is_left:
            with contextlib.suppress(OSError):  # if another run has begun to use it
                self.path.rmdir()
        self._lock.release()

    def discard(self) -> None:
        """Remove what an earlier run left unfinished."""
        _remove(self.partial)

    def finish(self) -> None:
        """Move the output to its place. What was there is removed afterwards, so that one of the two always exists."""
        if self.output.is_dir() and not self.partial.is_file():
            self.output.rename(self._replaced)
        self.partial.replace(self.output)
        _remove(self._replaced)

    def _restore(self) -> None:
        """Undo what a run that was killed while it replaced the output left behind."""
        if self._replaced.exists() and not self.output.exists():
            self._replaced.rename(self.output)
        _remove(self._replaced)


def writing_into(folder: str | Path) -> WorkingFolder:
    """Return the right to write files into a folder, which may exist already and may be the current one."""
    return WorkingFolder(Path(folder).resolve() if str(folder) else folder)


@contextlib.contextmanager
def writing_output(output: str | Path) -> Iterator[Path]:
    """Yield a path to write a file to, moved to `output` if the block succeeds; refuse a second writer meanwhile."""
    with WorkingFolder(output, "a file") as working:
        try:
            working.discard()
            yield working.partial
            working.finish()
        except OSError as error:
            raise UserError(f"could not write {str(output)!r}: {error.strerror or error}") from error
        finally:
            working.discard()


def refuse_same_file(read: str | Path, written: str | Path) -> None:
    """Refuse to write the file that is read."""
    first, second = Path(read), Path(written)
    if first.exists() and second.exists() and first.samefile(second):
        raise UserError(f"{str(written)!r} is read and would be overwritten; choose another --output")


def make_marked_folder(folder: Path) -> None:
    """Make a folder of ours beside the user's own; refuse one of the same name that is not ours."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    if not folder.is_symlink() and (folder.is_dir() or not folder.exists()):
        folder.mkdir(exist_ok=True)
        mark = folder / MARK
        names = {path.name for path in folder.iterdir()}
        if names <= {LOCK} or mark.exists():  # a run that ends removes the mark first, and one that begins makes it
            if not mark.exists():
                mark.write_text(ABOUT, "utf-8")
            return
    raise UserError(f"{str(folder)!r} was not made by ctxsim, which needs this name; move it away and run again")


def is_unfinished(output: str | Path) -> bool:
    """Return whether an interrupted run left this output unfinished."""
    return Path(f"{output}{SUFFIX}", "output").exists()


def final_output(folder: str | Path) -> Path:
    """Return the output of the working folder that a folder is in, or else the folder itself."""
    places = (place for place in (Path(folder), *Path(folder).parents) if place.name.endswith(SUFFIX))
    working = next(places, None)
    return Path(folder) if working is None else working.with_name(working.name.removesuffix(SUFFIX))


def is_being_written(folder: str | Path) -> bool:
    """Return whether a folder is the unfinished output in a working folder."""
    return Path(folder).name == "output" and Path(folder).parent.name.endswith(SUFFIX)


def _checked(output: str | Path, what: str) -> Path:
    path = Path(output)
    if not str(output) or path.name in ("", ".."):
        raise UserError(f"expected the name of {what} to write, got {str(output)!r}")
    try:
        path = path.resolve() if path.is_symlink() else path
        if what == "a folder" and path.exists() and not path.is_dir():
            raise UserError(f"expected the name of {what} to write, but {str(output)!r} is a file")
        if what == "a file" and path.exists() and not path.is_file():
            kind = "a folder" if path.is_dir() else "a device or a pipe"
            raise UserError(f"expected the name of {what} to write, but {str(output)!r} is {kind}")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"cannot write {str(output)!r}: {reason}") from error
    return path


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
