"""How a language model is asked: kept as context_model.json in its folder, beside the plain files of the model."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import write_json
from ctxsim_hf.runtime.validation import Count, OneOf, validate

SETTINGS_FILE = "context_model.json"
TERMS = ("sentence", "right")
PLACE = "{}"  # where a bridge takes the sentence


@dataclass(frozen=True, kw_only=True)
class CausalSettings:
    r"""
    Args:
        bridges (`list[str]`): Texts that take a sentence at `{}` and end where its context, one word, would begin.
            Each gives a vector of its own, and similarities are averaged over them.
        layer (`int`): Whose state at the end of the bridge is compared: -1 the last, just before the output layer.
        terms (`list[str]`): Terms of Eq. 3 that it answers for retrieved contexts, `sentence` and `right`; empty where
            another model answers them, or where cloze contexts are enough.
        width (`int`): Sentences on each side of a retrieved context.
        max_sentence_tokens (`int`): A longer sentence of a retrieved context is cut.
    """

    bridges: list[str] = field(default_factory=lambda: ['This sentence: "{}" means in one word: "'])
    layer: int = -1
    terms: list[Annotated[str, OneOf(TERMS)]] = field(default_factory=lambda: list(TERMS))
    width: Count = 1
    max_sentence_tokens: Count = 64

    def __post_init__(self) -> None:
        validate(self)
        if not self.bridges:
            raise UserError("expected a bridge, such as 'The sentence \"{}\" is about', got none")
        for bridge in self.bridges:
            if bridge.count(PLACE) != 1:
                raise UserError(f"a bridge takes the sentence at {PLACE}, once; got {bridge!r}")

    def save(self, folder: Path) -> None:
        write_json(folder / SETTINGS_FILE, asdict(self))

    @classmethod
    def load(cls, folder: Path) -> "CausalSettings":
        """Read the settings of a model; the defaults where it has none."""
        path = folder / SETTINGS_FILE
        if not path.exists():
            return cls()
        try:
            return cls(**json.loads(path.read_text("utf-8")))
        except (ValueError, TypeError) as error:
            raise UserError(f"{str(path)!r} is damaged: {error}") from None
