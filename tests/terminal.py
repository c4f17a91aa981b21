"""A standard error that tqdm takes for a terminal, so that a test sees the bars."""

import io
import re


class Terminal(io.StringIO):
    """What was written to a terminal."""

    def isatty(self) -> bool:
        return True

    @property
    def lines(self) -> list[str]:
        """Everything that a line of the terminal showed, one after another."""
        return [line for line in re.split("[\r\n]", self.getvalue()) if line.strip()]
