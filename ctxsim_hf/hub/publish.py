"""Publish a folder as a repository on the Hub: `ctxsim publish`.

All files are sent in one commit. An interrupted upload leaves the repository as it was, empty or at its last commit;
the same command again sends only what is missing. The Hub's client sends large files by xet, which the tests do not
exercise, or by LFS (HF_HUB_DISABLE_XET=1), which they do.
"""

import hashlib
import logging
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils import HFValidationError, validate_repo_id
from transformers.hf_argparser import HfArg

from ctxsim_hf.hub.hub_errors import hub_errors
from ctxsim_hf.hub.publication import CARD_FILE, METRIC, Publication, read_card
from ctxsim_hf.runtime.arguments import Arguments
from ctxsim_hf.runtime.errors import UserError

logger = logging.getLogger(__name__)

GIT_ATTRIBUTES = ".gitattributes"  # which the Hub adds to every repository


@dataclass(kw_only=True)
class PublishArguments(Arguments):
    """The arguments of `ctxsim publish`."""

    repo_id: str = HfArg(help="Name on the Hub, e.g. ctxsim/surrogate-large.")
    public: bool = HfArg(default=False, help="Make the repository public; by default it is private.")
    overwrite: bool = HfArg(default=False, help="Replace the content of a repository; its history keeps the old one.")
    dry_run: bool = HfArg(default=False, help="List what would be sent, and send nothing.")
    folders: list[str] = field(init=False, default_factory=list)

    positional: ClassVar[tuple[str, str]] = ("folders", "The folder to publish.")


def run(arguments: PublishArguments) -> str:
    """Publish a folder and return what was sent.

    The token is the one that `hf auth login` stored or HF_TOKEN holds; it is neither an argument nor shown.
    """
    publication = Publication.open(one_folder(arguments.folders))
    check_repo_id(arguments.repo_id)
    names = publication.files(arguments.repo_id)
    _check_names(publication, names, arguments.repo_id)
    if publication.kind.holds_text:
        logger.warning(
            f"{str(publication.folder)!r} holds sentences of your documents verbatim: "
            "everyone who may read the repository can read them"
        )
    listing = _listing(publication, names, arguments)
    if arguments.dry_run:
        return f"{listing}\nnothing was sent (--dry-run)"
    with hub_errors(arguments.repo_id):
        return f"{listing}\n{_publish(publication, names, arguments)}"


def one_folder(folders: list[str]) -> str:
    """Return the only folder of the command line."""
    if len(folders) != 1:
        raise UserError(f"expected one folder, got {len(folders)}")
    return folders[0]


def check_repo_id(repo_id: str) -> None:
    """Refuse what is not OWNER/NAME."""
    try:
        validate_repo_id(repo_id)
    except HFValidationError as error:
        raise UserError(f"{repo_id!r} is not a valid name on the Hub: {error}") from error
    if "/" not in repo_id:
        raise UserError(f"expected --repo-id OWNER/NAME, got {repo_id!r}")


def _check_names(publication: Publication, names: list[str], repo_id: str) -> None:
    if CARD_FILE not in names:
        raise UserError(
            f"{str(publication.folder)!r} has no card; write it with "
            f"ctxsim card {publication.folder} --repo-id {repo_id}, and read it"
        )
    if f'"{repo_id}"' not in (publication.folder / CARD_FILE).read_text("utf-8"):
        raise UserError(
            f"the examples in {str(publication.folder / CARD_FILE)!r} load something other than {repo_id!r}; "
            "make the card for that name, or change them"
        )
    # evaluate.load looks for a script of the repository's name.
    script = f"{repo_id.split('/')[1]}.py"
    if publication.kind is METRIC and script not in names:
        raise UserError(f"a metric {repo_id!r} needs a script {script}, {str(publication.folder)!r} has none")


def _check_card(publication: Publication) -> None:
    """Let the Hub validate the card."""
    path = publication.folder / CARD_FILE
    try:
        read_card(path).validate(repo_type=publication.kind.repo_type)
    except ValueError as error:
        raise UserError(f"the Hub rejects the card {str(path)!r}: {error}") from error


def _listing(publication: Publication, names: list[str], arguments: PublishArguments) -> str:
    sizes = {name: (publication.folder / name).stat().st_size for name in names}
    width = max(len(f"{size:,}") for size in sizes.values())
    lines = [f"  {size:>{width},} {name}" for name, size in sizes.items()]
    seen_by = "public" if arguments.public else "private"
    head = f"{arguments.repo_id} ({publication.kind.repo_type}, {seen_by}), {len(names)} files"
    return "\n".join([f"{head}, {sum(sizes.values()):,} bytes", *lines])


def _publish(publication: Publication, names: list[str], arguments: PublishArguments) -> str:
    api, kind = HfApi(), publication.kind
    repo: dict[str, Any] = {"repo_id": arguments.repo_id, "repo_type": kind.repo_type}
    # An invalid token, no network or a card that the Hub rejects should fail before anything is created.
    api.whoami()
    _check_card(publication)
    sdk = "gradio" if kind is METRIC else None
    api.create_repo(**repo, private=not arguments.public, exist_ok=True, space_sdk=sdk)
    info = api.repo_info(**repo)
    if not info.private and not arguments.public:
        raise UserError(f"{arguments.repo_id!r} is public; add --public to publish there, or choose another --repo-id")
    tree = api.list_repo_tree(**repo, revision=info.sha, recursive=True)
    theirs = {file.path: file for file in tree if isinstance(file, RepoFile) and file.path != GIT_ATTRIBUTES}
    new = [name for name in names if name not in theirs or not _is_same(publication.folder / name, theirs[name])]
    gone = sorted(theirs.keys() - set(names))
    if theirs and not new and not gone:
        return f"{arguments.repo_id} holds exactly this already, revision {info.sha}"
    if theirs and not arguments.overwrite:
        other = sorted({*gone, *(name for name in new if name in theirs)}) or new
        raise UserError(
            f"{arguments.repo_id!r} exists with other content ({len(other)} files, e.g. {other[0]}); choose another "
            "--repo-id, or replace it with --overwrite"
        )
    with warnings.catch_warnings():
        # The index of an origin is data in a model repository, on purpose.
        warnings.filterwarnings("ignore", "It seems that you are about to commit a data file")
        commit = api.create_commit(
            **repo,
            operations=[
                *(CommitOperationAdd(name, str(publication.folder / name)) for name in new),
                *(CommitOperationDelete(name) for name in gone),
            ],
            commit_message=f"{kind.name.capitalize()} by ctxsim_hf",
            parent_commit=info.sha,  # otherwise two simultaneous commits would mix their files
        )
    return f"{arguments.repo_id} is published; load exactly this with revision {commit.oid}"


def _is_same(path: Path, theirs: RepoFile) -> bool:
    if theirs.size != path.stat().st_size:
        return False
    if theirs.lfs is not None:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == theirs.lfs.sha256
    content = path.read_bytes()  # git's name of a small file
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest() == theirs.blob_id
