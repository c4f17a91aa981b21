"""Describe an ablation: arms, each a system and the steps that make it, unless the folder of `ctxsim adapt` has it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ctxsim_hf.recipes.adapted_folder import AdaptedFolder
from ctxsim_hf.recipes.steps import Step
from ctxsim_hf.text.tokenized import tokenize_chunks

ORIGIN_LIMIT = 500  # pairs: an origin takes 0.1 seconds for each with 100 contexts, 1 second with 1000


@dataclass(frozen=True)
class Arm:
    """One variant of an ablation."""

    name: str  # in tables, and of its folder
    system: str  # as `ctxsim evaluate` spells it
    settings: Mapping[str, Any] = field(default_factory=dict)  # arguments of `ctxsim evaluate`
    steps: Sequence[Step] = ()  # that make the system
    chunks: str | None = None  # folder whose number of tokens is shown next to the name
    note: str = ""  # what the name stands for, below the table


class Place(NamedTuple):
    """What the arms are made from, and where they are written."""

    adapted: AdaptedFolder
    output: Path
    minutes: float
    workers: int

    @property
    def origin(self) -> str:
        """The adapted origin, as `ctxsim evaluate` spells it."""
        return f"origin:{self.adapted.origin}"

    def of(self, arm: str, name: str) -> str:
        """Return the path of something in the folder of an arm."""
        return str(self.output / folder_name(arm) / name)


class Ablation(NamedTuple):
    """What an ablation varies, and how to make its arms."""

    about: str
    arms: Callable[[Place], list[Arm]]
    varies: tuple[str, ...] = ()  # settings of the origin that are the arms' own
    asks_origin: bool = True  # False where the arms are surrogates, which have no such settings and are fast
    signals: tuple[str, ...] | None = ("contexts=1",)  # of an origin, unless others are given; None: its own weights
    expects: Callable[[AdaptedFolder], None] | None = AdaptedFolder.expect_generator  # None: any folder will do

    @property
    def limit(self) -> int | None:
        """Default number of pairs of each task; None means all."""
        return ORIGIN_LIMIT if self.asks_origin else None


def folder_name(arm: str) -> str:
    """Return the name of an arm's folder."""
    return arm.replace(" ", "-")


def title(arm: Arm, adapted: AdaptedFolder) -> str:
    """Return the name of an arm in tables."""
    if arm.chunks is None:
        return arm.name
    tokens = len(tokenize_chunks(arm.chunks, adapted.place("tokenizer"), "train").tokens)
    return f"{arm.name}, {short_number(tokens)} tokens"


def short_number(number: int) -> str:
    """Format a number with a letter for its size: 980K, 1M, 34.5M."""
    for size, letter in ((10**9, "B"), (10**6, "M"), (10**3, "K")):
        if number >= size:
            return f"{number / size:.1f}".removesuffix(".0") + letter
    return str(number)
