"""One attempt: what is done, what it once led to, and what must come of it now."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from ctxsim_hf.runtime.errors import UserError
from faults.children import Outcome, command, run

SHOWN = 300  # characters of what was printed
NOT_TRIED = "not tried"
AS_NOW = "the same"
LATER = "later verbs"  # the row of what the list could not have
LINE, TRACEBACK = "plain line", "traceback"  # the row of all that should be one plain line, and was a traceback


@dataclass(frozen=True)
class Place:
    """A new folder to try something in, and the folders that all attempts copy from."""

    root: Path
    here: Path

    def copy(self, name: str, new: str | None = None) -> Path:
        """Copy one of the made folders."""
        return Path(shutil.copytree(self.root / name, self.here / (new or name)))

    def run(self, *words: object) -> str:
        """Run a command line in this process and return what it prints; its error is raised."""
        return command(words)()

    def words(self, line: str) -> list[str]:
        """Split a command line; $R is the folder of made things, $H the new one, $LONG a name of 300 letters."""
        named = {"$R": str(self.root), "$H": str(self.here), "$LONG": "x" * 300, "''": ""}
        return [reduce(lambda word, name: word.replace(name, named[name]), named, word) for word in line.split(" ")]

    def shell(self, line: str, **environment: str) -> str:
        """Run a line of bash and return what it prints; raise the last line of errors if it fails."""
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        env = os.environ | {"PATH": path, "R": str(self.root), "H": str(self.here)} | environment
        shell = ["bash", "-o", "pipefail", "-c", line]
        found = subprocess.run(shell, env=env, cwd=self.here, capture_output=True, text=True, errors="replace")
        if "Traceback" in found.stderr:
            raise RuntimeError(found.stderr)
        if found.returncode:
            raise UserError(found.stderr.splitlines()[-1] if found.stderr else f"exit code {found.returncode}")
        return found.stdout


@dataclass(frozen=True)
class Attempt:
    """Something that once went wrong."""

    row: str  # of the list of what once went wrong
    what: str
    before: str
    how: str  # it must end: `refused`, or `answer`
    pattern: str  # of what it must print
    function: Callable[[Place], str]

    def try_again(self, root: Path) -> tuple[bool, str]:
        """Return whether it ends as it must, and what it printed."""
        with tempfile.TemporaryDirectory(prefix="ctxsim-attempt-") as folder:
            place = Place(root, Path(folder).resolve())
            outcome = run(lambda: self.function(place))
            said = str(outcome.value).strip()
            good = outcome.how == self.how and re.search(self.pattern, said) is not None
            if outcome.how == "traceback":
                said = said.splitlines()[-1]
            return good, _shown(
                outcome, said.replace(f"{place.here}/", "").replace(f"{root}/", "").replace(str(root), "ROOT")
            )


ATTEMPTS: list[Attempt] = []


def cut(path: Path) -> None:
    """Cut a file in half."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path, place: int | None = None) -> None:
    """Flip a bit in the middle of a file, or elsewhere."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2 if place is None else place] ^= 4
    path.write_bytes(data)


def attempt(
    row: str, what: str, before: str, *, refused: str | None = None, answer: str | None = None
) -> Callable[[Callable[[Place], str]], Callable[[Place], str]]:
    """Add a function to the attempts. It must raise a `UserError` that matches, or return a text that does."""

    def add(function: Callable[[Place], str]) -> Callable[[Place], str]:
        how, pattern = ("refused", refused) if refused is not None else ("answer", answer)
        ATTEMPTS.append(Attempt(row, what, before, how, pattern or "", function))
        return function

    return add


def refuse_commands(row: str, before: str, cases: Sequence[tuple[str, str]]) -> None:
    """Add command lines that must be refused with words that match; see `Place.words`."""
    for line, pattern in cases:

        def function(place: Place, line: str = line) -> str:
            return place.run(*place.words(line))

        attempt(row, f"`{without_places(line)}`", before, refused=pattern)(function)


def without_places(line: str) -> str:
    """Return a command line as it is shown."""
    return line.replace("$R/", "").replace("$H/", "").replace("$R", "ROOT").replace("|", "\\|")


def try_all(root: Path, rows: Sequence[str] | None = None) -> int:
    """Try everything again, print a table in Markdown, and return how many did not end as they must."""
    bad = 0
    print("| row | tried | once | now |\n|---|---|---|---|")
    tried = [attempt_ for attempt_ in ATTEMPTS if not rows or attempt_.row in rows]
    last = (LINE, LATER)  # after those with numbers
    for attempt_ in sorted(tried, key=lambda one: (one.row in last and 1 + last.index(one.row), one.row.zfill(2))):
        good, said = attempt_.try_again(root)
        bad += not good
        flag = "" if good else "**WRONG** "
        print(f"| {attempt_.row} | {attempt_.what} | {attempt_.before} | {flag}{said} |", flush=True)
    print(f"\n{len(tried)} attempts, {bad} of them ended as they must not")
    return bad


def _shown(outcome: Outcome, said: str) -> str:
    text = " ".join(said.split())
    text = text if len(text) <= SHOWN else f"{text[: SHOWN // 2]} ... {text[-SHOWN // 2 :]}"
    text = text.replace("|", "\\|").replace("`", "'")
    return f"`{text}`" if outcome.how in ("refused", "answer") else f"{outcome.how}: `{text}`"
