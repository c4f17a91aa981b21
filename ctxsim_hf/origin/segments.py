"""The versions of an origin: which segments count, which of their chunks are deleted, and what follows from that.

    segments/<name>/    some documents, written once:        chunks.arrow, tokens/, sentence_keys.npy, tfidf/, stored/
    versions/<name>/    what all documents together decide:  version.json, deleted.npy, norms.npy, background.json,
                                                             words/, cloze.npy

stage.json names the version that counts and has the digests of its files. It is replaced last, so that an origin
always answers by one whole version, and readers that opened another go on with it.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import write_json

SEGMENTS, VERSIONS = "segments", "versions"
VERSION_FILE, DELETED = "version.json", "deleted.npy"
BACKGROUND, WORDS, CLOZE_STATES = "background.json", "words", "cloze.npy"


@dataclass(frozen=True)
class Version:
    """One version of an origin."""

    folder: Path  # versions/<name>
    segments: tuple[Path, ...]

    @classmethod
    def open(cls, origin: Path, name: str) -> "Version":
        """Open a version by its name."""
        path = Path(origin, VERSIONS, str(name), VERSION_FILE)
        try:
            names = json.loads(path.read_text("utf-8"))["segments"]
            if not names or (unknown := [each for each in (name, *names) if not is_short_digest(each)]):
                raise ValueError(f"it names {unknown[0]!r}" if names else "it names no segment")
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise UserError(f"{str(path)!r} is damaged ({error}); make the origin again with ctxsim index") from None
        return cls(path.parent, tuple(origin / SEGMENTS / segment for segment in names))

    @classmethod
    def current(cls, origin: Path, record: Mapping[str, Any]) -> "Version":
        """Open the version that the stage.json of an origin names."""
        if "version" not in record:
            raise UserError(
                f"{str(origin)!r} has no version, as an older ctxsim made it; make it again with ctxsim index"
            )
        return cls.open(origin, record["version"])

    @property
    def folders(self) -> tuple[Path, ...]:
        """All that it consists of."""
        return (self.folder, *self.segments)

    @property
    def name(self) -> str:
        """The version id, which says what documents count."""
        return self.folder.name

    @cached_property
    def deleted(self) -> np.ndarray:
        """The deleted chunks, numbered through all segments, ascending."""
        found: np.ndarray = np.load(self.folder / DELETED, allow_pickle=False)
        return found

    @cached_property
    def background(self) -> list[str]:
        """The sentences that scores are compared with."""
        background: list[str] = json.loads((self.folder / BACKGROUND).read_text("utf-8"))
        return background

    def cloze_states(self) -> np.ndarray | None:
        """Return what the background suggests to a language model; None if the origin has none."""
        path = self.folder / CLOZE_STATES
        return np.load(path, allow_pickle=False) if path.exists() else None


def save_version(folder: Path, segments: Sequence[Path], deleted: np.ndarray) -> None:
    """Write what `Version` reads."""
    write_json(folder / VERSION_FILE, {"segments": [segment.name for segment in segments]})
    np.save(folder / DELETED, deleted.astype(np.int64))


def version_name(segments: Sequence[str], deleted: np.ndarray) -> str:
    """Return the name of a version of segments with these names."""
    return short_digest([list(segments), deleted.tolist()])


def short_digest(value: Any) -> str:
    """Return a name for what a JSON value describes."""
    return xxhash.xxh3_64_hexdigest(json.dumps(value, sort_keys=True).encode())


def is_short_digest(name: str) -> bool:
    """Return whether a folder of segments or versions has the name of one, so that it is no one else's."""
    return re.fullmatch("[0-9a-f]{16}", name) is not None
