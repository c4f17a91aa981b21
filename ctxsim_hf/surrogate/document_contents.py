"""The index.json of an index of documents: which of its data count."""

import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import TEMPORARY, read_sealed, seal, write_json
from ctxsim_hf.runtime.validation import CountOrZero, validate
from ctxsim_hf.surrogate.search_index import INDEX_FILE, REMEDY

KIND = "documents"
# Names of folders; no other is opened or removed.
DATA, ADDITION, SENTENCES = re.compile(r"data-\d+"), re.compile(r"\d{6}"), "sentences"
HELD = re.compile(rf"{ADDITION.pattern}|\.{ADDITION.pattern}{re.escape(TEMPORARY)}|{SENTENCES}")


@dataclass(frozen=True, kw_only=True)
class DocumentContents:
    """What counts; by default nothing yet."""

    kind: str = KIND
    data: str = "data-0"  # folder of the data
    added: list[str] = field(default_factory=list)  # folders in there, one for each addition
    deleted: list[CountOrZero] = field(default_factory=list)  # numbers of documents

    def __post_init__(self) -> None:
        validate(self)
        unknown = [name for name in self.added if not ADDITION.fullmatch(name)]
        if unknown or not DATA.fullmatch(self.data):
            raise UserError(f"it names {[*unknown, self.data][0]!r}")

    @property
    def next_data(self) -> str:
        """The name of the data that take the place of these."""
        return f"data-{int(self.data.removeprefix('data-')) + 1}"

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read the index.json of a folder; refuse that of an index of sentences."""
        left = data_folders(folder)  # first, since another run may write index.json and then data
        about = read_about(folder)
        if left and not about:
            has = f"{str(folder)!r} has {left[0].name} but no {INDEX_FILE}"
            raise UserError(f"{has}; choose another --index, or remove what is left of a damaged one")
        if about and about.get("kind") != KIND:
            raise UserError(f"{str(folder)!r} holds sentences; choose another --index for documents")
        try:
            return cls(**about)
        except (TypeError, UserError) as error:
            raise UserError(f"{str(folder / INDEX_FILE)!r} is damaged: {error}; {REMEDY}") from error

    def save(self, folder: Path) -> None:
        """Write index.json."""
        write_json(folder / INDEX_FILE, seal(asdict(self)))


def data_folders(folder: Path) -> list[Path]:
    """Return the folders in there that have the name of data and hold nothing else."""
    found = sorted(path for path in folder.glob("data-*") if DATA.fullmatch(path.name) and path.is_dir())
    return [path for path in found if not path.is_symlink() and all(HELD.fullmatch(p.name) for p in path.iterdir())]


def read_about(folder: Path) -> dict[str, Any]:
    """Return the index.json of a folder, or an empty dictionary if there is none."""
    return read_sealed(folder / INDEX_FILE, REMEDY)
