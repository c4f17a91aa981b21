"""The arguments of commands. A dataclass is its flags, their defaults, bounds and help texts, and its record."""

from dataclasses import dataclass, fields
from typing import Any, ClassVar

from transformers.hf_argparser import HfArg

from ctxsim_hf.runtime.validation import validate


@dataclass(kw_only=True)
class Arguments:
    """Flags of a command. What a class checks beside single values comes after `super().__post_init__()`."""

    def __post_init__(self) -> None:
        validate(self)


@dataclass(kw_only=True)
class StageArguments(Arguments):
    """Flags that every stage has."""

    output: str = HfArg(help="Folder to write. Run the same command again to go on after an interruption.")
    overwrite: bool = HfArg(default=False, help="Replace a folder that other arguments made.")

    # What cannot change a byte of the output (a path, the number of workers): stage.json does not mention it, and a
    # rerun may change it.
    unrecorded: ClassVar[tuple[str, ...]] = ("output", "overwrite")

    def recorded(self) -> dict[str, Any]:
        """The arguments that shape the output."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in self.unrecorded}
