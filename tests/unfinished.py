"""The folder in which an interrupted run leaves its output."""

from pathlib import Path

from ctxsim_hf.runtime.working import WorkingFolder, make_marked_folder


def unfinished(output: Path) -> Path:
    """Make the working folder of an output and return where its unfinished files are, still to be made."""
    working = WorkingFolder(output)
    make_marked_folder(working.path)
    return working.partial
