"""A work in blocks small enough to see through, in a module that worker processes can import."""

import os
import signal
from dataclasses import dataclass
from functools import cached_property

from ctxsim_hf.runtime.blocks import FileBlocks
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import writing


@dataclass
class Squares(FileBlocks):
    """Writes the square of each number into a file; `merge` adds them up."""

    number: int = 6
    refused: str = ""  # the block that raises an error
    killed: str = ""  # the block whose process is killed

    @cached_property
    def opened(self) -> str:
        with (self.folder / f"opened-{os.getpid()}").open("a") as file:
            file.write("x")
        return "here"

    def blocks(self) -> list[str]:
        return [f"{number}.txt" for number in range(self.number)]

    def run_block(self, name: str) -> None:
        assert self.opened == "here" and not self.is_done(name)
        if name == self.refused:
            raise UserError(f"{name} is refused")
        if name == self.killed:
            os.kill(os.getpid(), signal.SIGKILL)
        with writing(self.folder / name) as temporary:  # whole or not at all, as a block has to be
            temporary.write_text(str(int(name.removesuffix(".txt")) ** 2))

    def merge(self) -> int:
        return sum(int((self.folder / name).read_text()) for name in self.blocks())
