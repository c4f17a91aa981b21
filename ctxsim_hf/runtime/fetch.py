"""The name of something on this machine, or an id on the Hub -> a local path.

| name | what it stands for |
|---|---|
| `some/folder` | the folder, if it exists |
| `some/model.gguf` | the file, where a language model is wanted |
| `package:NAME/PATH` | a folder or file inside an installed package, none of whose code is run |
| `owner/name` | a repository on the Hub, downloaded to the cache |
| `owner/name/some_model.gguf` | one file of it, where a language model is wanted |
"""

import contextlib
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from huggingface_hub import hf_hub_download, list_repo_files, snapshot_download

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.record import check_if_stage, refuse_unfinished

PACKAGE = "package:"
GGUF_SUFFIX = ".gguf"  # of a file that holds a whole language model: weights, settings and tokenizer
HUB_FILE = re.compile(rf"(?P<id>[^/]+/[^/]+)/(?P<file>.+{re.escape(GGUF_SUFFIX)})")


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
    """Return the id of what is on the Hub, and the file if only that is meant, as entries for stage.json and the card;
    none for a local path, which would say nothing elsewhere."""
    if Path(locate(name)).exists():
        return {}
    hub_file = HUB_FILE.fullmatch(str(name))
    return hub_file.groupdict() if hub_file else {"id": str(name)}


def fetch_model(name: str | Path, expected: str, allow_patterns: Sequence[str] | None = None) -> Path:
    """Return the folder of a model as `fetch_folder` does, or the GGUF file that `name` stands for.

    Each GGUF file of a repository is a whole model, and often it has a dozen: none is downloaded beside safetensors,
    and one alone, which has to be named where there are several.
    """
    path = Path(locate(name))
    if path.suffix == GGUF_SUFFIX and path.is_file():
        return path
    if is_folder(path):
        return fetch_folder(path, expected)
    if hub_file := HUB_FILE.fullmatch(str(name)):
        with _explain_download(expected, str(name)):
            return Path(hf_hub_download(hub_file["id"], hub_file["file"]))
    folder = fetch_folder(name, expected, allow_patterns=allow_patterns, ignore_patterns=[f"*{GGUF_SUFFIX}"])
    if any(folder.glob("*.safetensors")):
        return folder
    gguf = only_gguf(str(name), _gguf_files(str(name), folder))
    return folder if gguf is None else (fetch_folder(name, expected, allow_patterns=[gguf]) / gguf).parent


def only_gguf(where: str, files: Iterable[str]) -> str | None:
    """Return the one GGUF file of a folder or a repository, None if it has none; refuse several."""
    names = sorted(files)
    if len(names) > 1:
        raise UserError(
            f"expected one GGUF file in {where!r}, found {', '.join(names)}; name one, such as {where}/{names[0]}"
        )
    return names[0] if names else None


def fetch_folder(
    name: str | Path,
    expected: str,
    repo_type: str = "model",
    revision: str | None = None,
    allow_patterns: Sequence[str] | None = None,
    ignore_patterns: Sequence[str] | None = None,
) -> Path:
    """Return the local folder `name`, or download the repository of this id from the Hub; refuse a damaged one.

    Args:
        name (`str` or `Path`): A local folder, which takes precedence, `package:NAME/PATH`, or an id on the Hub.
        expected (`str`): What the folder should hold, for the error message, e.g. `the folder of a surrogate`.
        repo_type (`str`): Type of the repository on the Hub.
        revision (`str`, *optional*): Revision of the repository, e.g. a commit. None takes the latest.
        allow_patterns (`Sequence[str]`, *optional*): Files to download. None downloads all of them.
        ignore_patterns (`Sequence[str]`, *optional*): Files not to download even so. No folder of ours has such.
    """
    name = locate(name)
    if is_folder(name):
        check_if_stage(name)
        return Path(name)
    refuse_unfinished(name)
    patterns = None if allow_patterns is None else list(allow_patterns)
    ignored = None if ignore_patterns is None else list(ignore_patterns)
    with _explain_download(expected, name):
        folder = snapshot_download(
            name, repo_type=repo_type, revision=revision, allow_patterns=patterns, ignore_patterns=ignored
        )
    check_if_stage(folder, patterns)
    return Path(folder)


def is_folder(name: str | Path) -> bool:
    """Return whether there is a local folder of this name; a name that no file can have is that of none."""
    try:
        return Path(name).is_dir()
    except OSError:
        return False


@contextlib.contextmanager
def _explain_download(expected: str, name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # the client raises many types, and an AssertionError where the server is not a Hub
        raise UserError(
            f"expected {expected} or its id on the Hub, but {name!r} is not a local folder and could not be "
            f"downloaded ({type(error).__name__}); check the name and the network"
        ) from error


def _gguf_files(repository: str, folder: Path) -> list[str]:
    """Return the names of the GGUF files in a repository; without the network, of those already in its folder."""
    try:
        files = list_repo_files(repository)
    except Exception:  # many types, as above
        files = [path.relative_to(folder).as_posix() for path in folder.rglob("*")]
    return [file for file in files if file.endswith(GGUF_SUFFIX)]
