"""Base dataclasses for the arguments of commands: flags, their defaults, bounds, help texts, and what is recorded."""

from dataclasses import dataclass, fields
from typing import Any, ClassVar

from transformers.hf_argparser import HfArg

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.validation import validate


@dataclass(kw_only=True)
class Arguments:
    """The flags of a command. A subclass checks combinations of values after calling `super().__post_init__()`."""

    def __post_init__(self) -> None:
        validate(self)


@dataclass(kw_only=True)
class StageArguments(Arguments):
    """The flags that every stage has."""

    output: str = HfArg(help="Folder to write. Run the same command again to resume after an interruption.")
    overwrite: bool = HfArg(default=False, help="Replace a folder that other arguments made.")

    # Arguments that cannot change a byte of the output, such as a path or the number of workers. stage.json does not
    # mention them, and a rerun may change them.
    unrecorded: ClassVar[tuple[str, ...]] = ("output", "overwrite")

    def __post_init__(self) -> None:
        super().__post_init__()
        if "://" in str(self.output):
            raise UserError(
                f"--output must be a folder on a file system that all processes share, got the URL {self.output!r}; "
                "choose a folder, and copy it when it is finished"
            )
        if any("\ud800" <= character <= "\udfff" for character in str(self.output)):  # bytes that are not UTF-8
            raise UserError(f"--output must be a name in UTF-8, got {self.output!a}")

    def recorded(self) -> dict[str, Any]:
        """Return the arguments that shape the output."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in self.unrecorded}
