"""A folder's name, or its id on the Hub -> the folder."""

from collections.abc import Sequence
from pathlib import Path

from huggingface_hub import snapshot_download

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.stage import refuse_unfinished


def fetch_folder(
    name: str | Path,
    expected: str,
    repo_type: str = "model",
    revision: str | None = None,
    allow_patterns: Sequence[str] | None = None,
) -> Path:
    """Return the folder `name`, or a copy of what the Hub has under this id.

    Args:
        name (`str` or `Path`): A folder here comes first.
        expected (`str`): What it should be, to say so where it is neither, e.g. `the folder of a surrogate`.
        repo_type (`str`): Kind of repository on the Hub.
        revision (`str`, *optional*): Of the repository, e.g. a commit. None takes the latest.
        allow_patterns (`Sequence[str]`, *optional*): Files to fetch. None fetches all of them.
    """
    if Path(name).is_dir():
        return Path(name)
    refuse_unfinished(name)
    patterns = None if allow_patterns is None else list(allow_patterns)
    try:
        return Path(snapshot_download(str(name), repo_type=repo_type, revision=revision, allow_patterns=patterns))
    except Exception as error:  # the client raises many kinds, and asserts what a server that is no Hub does not keep
        raise UserError(
            f"expected {expected} or its id on the Hub, but {str(name)!r} is no folder here and could not be fetched "
            f"({type(error).__name__})"
        ) from error
