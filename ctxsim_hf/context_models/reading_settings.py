"""How much a pretrained context model reads: context_model.json in its folder, beside the model's own files."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import write_json
from ctxsim_hf.runtime.validation import Count, validate

SETTINGS_FILE = "context_model.json"


@dataclass(frozen=True, kw_only=True)
class ReadingSettings:
    r"""
    Settings that every pretrained context model has. A model with more of them subclasses this.

    Args:
        width (`int`): Sentences on each side of a context that the model reads.
        max_sentence_tokens (`int`): A longer sentence is cut.
    """

    width: Count = 1
    max_sentence_tokens: Count = 64

    def __post_init__(self) -> None:
        validate(self)

    def save(self, folder: Path) -> None:
        write_json(folder / SETTINGS_FILE, asdict(self))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read the settings in a folder. The defaults hold where there is no file, and for what it leaves out."""
        path = folder / SETTINGS_FILE
        if not path.exists():
            return cls()
        try:
            return cls(**json.loads(path.read_text("utf-8")))
        except (OSError, ValueError, TypeError, UserError) as error:
            raise UserError(f"expected settings of a context model in {str(path)!r}: {error}") from None
