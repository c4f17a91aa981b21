"""The name of a local folder, or an id on the Hub -> a local folder."""

from collections.abc import Sequence
from pathlib import Path

from huggingface_hub import snapshot_download

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.record import check_if_stage, refuse_unfinished


def fetch_folder(
    name: str | Path,
    expected: str,
    repo_type: str = "model",
    revision: str | None = None,
    allow_patterns: Sequence[str] | None = None,
) -> Path:
    """Return the local folder `name`, or download the repository of this id from the Hub; refuse a damaged one.

    Args:
        name (`str` or `Path`): A local folder, which takes precedence, or an id on the Hub.
        expected (`str`): What the folder should hold, for the error message, e.g. `the folder of a surrogate`.
        repo_type (`str`): Type of the repository on the Hub.
        revision (`str`, *optional*): Revision of the repository, e.g. a commit. None takes the latest.
        allow_patterns (`Sequence[str]`, *optional*): Files to download. None downloads all of them.
    """
    if is_folder(name):
        check_if_stage(name)
        return Path(name)
    refuse_unfinished(name)
    patterns = None if allow_patterns is None else list(allow_patterns)
    try:
        folder = snapshot_download(str(name), repo_type=repo_type, revision=revision, allow_patterns=patterns)
    except Exception as error:  # the client raises many types, and an AssertionError where the server is not a Hub
        raise UserError(
            f"expected {expected} or its id on the Hub, but {str(name)!r} is not a local folder and could not be "
            f"downloaded ({type(error).__name__}); check the name and the network"
        ) from error
    check_if_stage(folder, patterns)
    return Path(folder)


def is_folder(name: str | Path) -> bool:
    """Return whether there is a local folder of this name; a name that no file can have is that of none."""
    try:
        return Path(name).is_dir()
    except OSError:
        return False
