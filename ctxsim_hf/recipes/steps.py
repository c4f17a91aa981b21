"""Commands in a row, as `ctxsim adapt` and `ctxsim ablate` run them: what is there already is not made again."""

import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ctxsim_hf.cli import run_verb


class Step(NamedTuple):
    """A command that could be typed as well."""

    verb: str
    flags: list[str]
    leaves: str  # what is there once the step is done, and not before
    has_counts: bool = False  # to show at its end

    @classmethod
    def stage(cls, verb: str, flags: Sequence[str], output: str | Path) -> "Step":
        return cls(verb, [*flags, "--output", str(output)], str(output), has_counts=True)

    @classmethod
    def evaluation(cls, flags: Sequence[str], output: str | Path) -> "Step":
        """An evaluation's folder grows file by file; results.json is the last."""
        return cls("evaluate", [*flags, "--output", str(output)], str(Path(output) / "results.json"))

    def __str__(self) -> str:
        return f"ctxsim {self.verb} {shlex.join(self.flags)}"


def run_steps(
    steps: Sequence[Step], minutes: float, checks: Mapping[str, Callable[[str], None]] | None = None
) -> None:
    """Do what is not done yet, and show it.

    Args:
        steps: In order.
        minutes (`float`): About how long all of them take, to be shown.
        checks: Verb -> what looks at the folder that it left, before the next step.
    """
    start = time.monotonic()
    for number, step in enumerate(steps, 1):
        place = f"[{number}/{len(steps)}]"
        if Path(step.leaves).exists():
            _say(f"{place} {step.leaves} is there already")
        else:
            spent = (time.monotonic() - start) / 60
            _say(f"{place} {spent:.0f} of about {minutes:g} minutes\n{step}")
            said = run_verb(step.verb, step.flags)
            if step.has_counts:
                _say(said)
        if checks and step.verb in checks:
            checks[step.verb](step.leaves)


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
