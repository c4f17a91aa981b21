"""The name of something on this machine, or an id on the Hub -> a local path.

| name | what it stands for |
|---|---|
| `some/folder` | the folder, if it exists |
| `some/model.gguf` | the file, where a language model is wanted |
| `package:NAME/PATH` | a folder or file inside an installed package, none of whose code is run |
| `owner/name` | a repository on the Hub, downloaded to the cache |
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from huggingface_hub import snapshot_download

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.record import check_if_stage, refuse_unfinished

PACKAGE = "package:"
GGUF_SUFFIX = ".gguf"  # of a file that holds a whole language model: weights, settings and tokenizer


def locate(name: str | Path) -> str:
    """Turn `package:NAME/PATH` into a path; return any other name as it is.

    Packages are looked for as folders on the import path: importlib would import the parents of a dotted name.
    """
    if not str(name).startswith(PACKAGE):
        return str(name)
    package, _, path = str(name).removeprefix(PACKAGE).partition("/")
    inside = package.replace(".", "/")
    folders = [Path(entry, inside) for entry in sys.path if inside and Path(entry, inside).is_dir()]
    for folder in folders:
        if (folder / path).exists():
            return str(folder / path)
    raise UserError(
        f"expected {path!r} in an installed package {package!r}, found {'none' if folders else 'no package'}"
    )


def hub_id(name: str | Path) -> dict[str, str]:
    """Return the id of what is on the Hub, as an entry for stage.json and the card; no entry for a local path, which
    would say nothing elsewhere."""
    return {} if Path(locate(name)).exists() else {"id": str(name)}


def fetch_model(name: str | Path, expected: str, allow_patterns: Sequence[str] | None = None) -> Path:
    """Return the folder of a model as `fetch_folder` does, or the GGUF file that `name` stands for."""
    path = Path(locate(name))
    is_gguf = path.suffix == GGUF_SUFFIX and path.is_file()
    return path if is_gguf else fetch_folder(name, expected, allow_patterns=allow_patterns)


def fetch_folder(
    name: str | Path,
    expected: str,
    repo_type: str = "model",
    revision: str | None = None,
    allow_patterns: Sequence[str] | None = None,
) -> Path:
    """Return the local folder `name`, or download the repository of this id from the Hub; refuse a damaged one.

    Args:
        name (`str` or `Path`): A local folder, which takes precedence, `package:NAME/PATH`, or an id on the Hub.
        expected (`str`): What the folder should hold, for the error message, e.g. `the folder of a surrogate`.
        repo_type (`str`): Type of the repository on the Hub.
        revision (`str`, *optional*): Revision of the repository, e.g. a commit. None takes the latest.
        allow_patterns (`Sequence[str]`, *optional*): Files to download. None downloads all of them.
    """
    name = locate(name)
    if is_folder(name):
        check_if_stage(name)
        return Path(name)
    refuse_unfinished(name)
    patterns = None if allow_patterns is None else list(allow_patterns)
    try:
        folder = snapshot_download(name, repo_type=repo_type, revision=revision, allow_patterns=patterns)
    except Exception as error:  # the client raises many types, and an AssertionError where the server is not a Hub
        raise UserError(
            f"expected {expected} or its id on the Hub, but {name!r} is not a local folder and could not be "
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
