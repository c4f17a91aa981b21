"""Describe an origin folder: layout.json names its context models and the width of its contexts.

origin.json        settings                    tokenizer/         by which the index counts and compares tokens
context_models/    a folder for each model     signals/           what other signals need, such as an encoder
segments/          documents, see segments.py  versions/          which of them count
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from ctxsim_hf.context_models.base import ContextModel
from ctxsim_hf.context_models.registry import context_model_class, load_context_model, model_type_of
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import write_json
from ctxsim_hf.runtime.validation import Count, validate

LAYOUT_FILE = "layout.json"
FORMAT = 3
CONTEXT_MODELS, TOKENIZER, SIGNALS = "context_models", "tokenizer", "signals"


@dataclass(frozen=True)
class Layout:
    """The content of layout.json."""

    context_models: list[str]  # names of folders; no other is ever opened
    width: Count  # sentences on each side of a context, the most that a model reads

    def __post_init__(self) -> None:
        validate(self)

    def save(self, folder: Path) -> None:
        """Write layout.json."""
        write_json(folder / LAYOUT_FILE, {"format": FORMAT} | asdict(self))

    @classmethod
    def load(cls, folder: Path) -> "Layout":
        """Read layout.json; refuse another format."""
        try:
            about = json.loads((folder / LAYOUT_FILE).read_text("utf-8"))
            found = about.pop("format")
        except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
            raise UserError(
                f"{str(folder / LAYOUT_FILE)!r} is damaged ({error}); make it again with ctxsim index"
            ) from None
        if found != FORMAT:
            raise UserError(
                f"{str(folder)!r} has the format {found}, this version reads {FORMAT}; make it again with ctxsim index"
            )
        try:
            return cls(**about)
        except (TypeError, UserError) as error:
            raise UserError(
                f"{str(folder / LAYOUT_FILE)!r} is damaged ({error}); make it again with ctxsim index"
            ) from None

    def open_models(self, folder: Path, device: str) -> dict[str, ContextModel]:
        """Open all context models, by name."""
        return {name: load_context_model(folder / CONTEXT_MODELS / name, device) for name in self.context_models}

    def storing_models(self, folder: Path) -> list[str]:
        """Return the names of the models for which an index stores something."""
        places = {name: folder / CONTEXT_MODELS / name for name in self.context_models}
        return [name for name, place in places.items() if context_model_class(model_type_of(place)).stores]


def default_device() -> str:
    """Return a GPU if there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"
