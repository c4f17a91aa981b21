"""How a language model is asked: kept as context_model.json in its folder, beside the plain files of the model."""

from dataclasses import dataclass, field
from typing import Annotated

from ctxsim_hf.context_models.reading_settings import ReadingSettings
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.validation import OneOf

TERMS = ("sentence", "right")
PLACE = "{}"  # where a bridge takes the sentence
# Of eighteen, these two together agreed best with people, with the last layer but one: docs/experiments.md.
BRIDGES = (
    'This sentence: "{}" means in one word: "',
    'The meaning of the sentence "{}" can be summarized in one word: "',
)


@dataclass(frozen=True, kw_only=True)
class CausalSettings(ReadingSettings):
    r"""
    Args:
        bridges (`list[str]`): Texts that take a sentence at `{}` and end where its context, one word, would begin.
            Each gives a vector of its own, and similarities are averaged over them. At a second `{}` a causal model
            reads the sentence again, this time knowing its end.
        layer (`int`): Whose state at the end of the bridge is compared: -1 the last, just before the output layer.
        terms (`list[str]`): Terms of Eq. 3 that it answers for retrieved contexts, `sentence` and `right`; empty where
            another model answers them, or where cloze contexts are enough.
    """

    bridges: list[str] = field(default_factory=lambda: list(BRIDGES))
    layer: int = -2
    terms: list[Annotated[str, OneOf(TERMS)]] = field(default_factory=lambda: list(TERMS))

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.bridges:
            raise UserError("expected a bridge, such as 'The sentence \"{}\" is about', got none")
        for bridge in self.bridges:
            if PLACE not in bridge:
                raise UserError(f"a bridge takes the sentence at {PLACE}; got {bridge!r}")
