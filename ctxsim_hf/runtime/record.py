"""Read the stage.json of a folder and check the folder against it."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from ctxsim_hf.runtime.checks import check_files, refuse_loadable_files
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import SEAL, digest_file, parse_sealed, seal, write_json
from ctxsim_hf.runtime.working import is_being_written, is_unfinished

STAGE_FILE = "stage.json"
LOG_FILE = "stage.log"


def read_stage(folder: str | Path, *commands: str) -> dict[str, Any]:
    """Return the stage.json of a finished folder.

    Args:
        folder (`str` or `Path`): The folder.
        commands (`str`): Commands, one of which must have made the folder; error messages name the first. None given:
            any command will do.
    """
    folder = Path(folder)
    wanted = f"a folder made by `ctxsim {commands[0]}`" if commands else "a folder made by a ctxsim command"
    try:
        record = _parse((folder / STAGE_FILE).read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        refuse_unfinished(folder)
        what = "has no stage.json" if folder.exists() else "does not exist"
        raise UserError(f"expected {wanted}, but {str(folder)!r} {what}") from None
    except OSError as error:
        raise UserError(f"expected {wanted}, but {str(folder)!r} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(
            f"{str(folder / STAGE_FILE)!r} is damaged ({error}); make the folder again with --overwrite"
        ) from None
    if commands and record["command"] not in commands:
        raise UserError(f"expected {wanted}, but {str(folder)!r} was made by `ctxsim {record['command']}`")
    return record


def read_counts(folder: str | Path, *commands: str) -> dict[str, Any]:
    """Return the counts that the stage.json of a finished folder records. See `read_stage`."""
    counts: dict[str, Any] = read_stage(folder, *commands)["counts"]
    return counts


def replace_record(folder: Path, record: Mapping[str, Any]) -> None:
    """Replace the stage.json of a folder that has changed in place; all that it names must be there already."""
    write_json(folder / STAGE_FILE, seal({name: value for name, value in record.items() if name != SEAL}))


def open_stage(folder: str | Path, *commands: str) -> dict[str, Any]:
    """Return the stage.json of a finished folder, after a check of its files. See `read_stage`."""
    record = read_stage(folder, *commands)
    check_stage(folder, record)
    return record


def check_stage(folder: str | Path, record: Mapping[str, Any]) -> None:
    """Refuse a folder in which a file has changed, or that has others which might be loaded as a part of it."""
    check_files(Path(folder), record["files"])
    refuse_loadable_files(Path(folder), record["files"])


def check_if_stage(folder: str | Path, patterns: Sequence[str] | None = None) -> None:
    """Check the files of a folder that a stage made; in any other there is nothing to check against.

    Args:
        folder (`str` or `Path`): The folder.
        patterns (`Sequence[str]`, *optional*): What was downloaded of it; files that match none of these are not
            expected there. None expects all.
    """
    if (Path(folder) / STAGE_FILE).exists() and not is_being_written(folder):
        files = read_stage(folder)["files"]
        wanted = [name for name in files if patterns is None or any(fnmatch(name, pattern) for pattern in patterns)]
        check_files(Path(folder), {name: files[name] for name in wanted})
        refuse_loadable_files(Path(folder), files)


def describe_stage(folder: str | Path, *commands: str) -> dict[str, Any]:
    """Check a folder and describe it for the stage.json of a stage that reads it: one digest for all of its files
    (stage.json holds the digest of each) and what it was made from. Its path is left out, since a folder may be
    moved."""
    record = open_stage(folder, *commands)
    return {"xxh3_128": digest_file(Path(folder) / STAGE_FILE), "inputs": record["inputs"]}


def refuse_unfinished(folder: str | Path) -> None:
    """Refuse a folder that an interrupted run left unfinished."""
    if is_unfinished(folder):
        raise UserError(f"{str(folder)!r} is not finished yet; run the command that makes it again to resume")


def _parse(text: str) -> dict[str, Any]:
    record = parse_sealed(text)
    for key, kind in (("command", str), ("arguments", dict), ("inputs", dict), ("versions", dict)):
        if not isinstance(record[key], kind):
            raise TypeError(f"{key!r} is not of type {kind.__name__}")
    if not isinstance(record.get("counts", {}), dict):
        raise TypeError("'counts' is not of type dict")
    for description in record["files"].values():
        if not isinstance(description["bytes"], int) or not isinstance(description["xxh3_128"], str):
            raise TypeError("'files' does not describe files")
    return record
