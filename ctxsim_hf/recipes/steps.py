"""Run stages in a row, as `ctxsim adapt` and `ctxsim ablate` do; finished ones are not run again."""

import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, Self

from ctxsim_hf.runtime.counts import describe_result
from ctxsim_hf.verbs import VERBS, build_arguments

Checks = Mapping[str, Callable[[str], None]]  # verb -> function that checks the folder it made


@dataclass(frozen=True)
class Step:
    """A verb and the values of its arguments; the others keep their defaults."""

    verb: str
    values: Mapping[str, Any]
    leaves: str  # a path that exists once the step is finished, and not before

    @classmethod
    def stage(cls, verb: str, output: str | Path, **values: Any) -> Self:
        """Return a step that runs a stage."""
        return cls(verb, {**values, "output": str(output)}, str(output))

    @classmethod
    def evaluation(cls, systems: Sequence[str], output: str | Path, **values: Any) -> Self:
        """Return a step that runs `ctxsim evaluate`, which writes results.json last."""
        values = {"systems": list(systems), **values, "output": str(output)}
        return cls("evaluate", values, str(Path(output) / "results.json"))

    @property
    def is_done(self) -> bool:
        """Whether there is nothing to do; a step that changes or replaces what is there is never done."""
        return Path(self.leaves).exists() and not (self.values.get("overwrite") or self.values.get("add"))

    def run(self) -> Any:
        """Run the verb and return its result; that of a stage is its counts."""
        verb = VERBS[self.verb]
        return verb.run(build_arguments(verb.arguments_class, self.values))

    def __str__(self) -> str:
        return command_line(self.verb, self.values)


def command_line(verb: str, values: Mapping[str, Any]) -> str:
    """Return the command line that runs a verb with these values, without those that are defaults."""
    arguments = VERBS[verb].arguments_class
    positional, _ = getattr(arguments, "positional", ("", ""))
    words = ["ctxsim", *verb.split(), *values.get(positional, ())]
    defaults = {f.name: f.default if f.default_factory is MISSING else f.default_factory() for f in fields(arguments)}
    for name, value in values.items():
        if name != positional and value not in (None, defaults[name]):
            words += _flag(name.replace("_", "-"), value)
    return shlex.join(words)


def _flag(name: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    values = value if isinstance(value, list) else [value]
    return [
        f"--{name}",
        *(str(int(each) if isinstance(each, float) and each.is_integer() else each) for each in values),
    ]


def run_steps(steps: Sequence[Step], minutes: float, checks: Checks | None = None) -> None:
    """Run the steps that are not finished yet, and show each as a command line, with its counts.

    Args:
        steps: The steps in order.
        minutes: About how long all of them take; only shown.
        checks: Verb -> function that checks the folder it made before the next step runs. None means no checks.
    """
    start = time.monotonic()
    for number, step in enumerate(steps, 1):
        place = f"[{number}/{len(steps)}]"
        if step.is_done:
            _show(f"{place} {step.leaves} exists already")
        else:
            spent = (time.monotonic() - start) / 60
            _show(f"{place} {spent:.0f} of about {minutes:g} minutes\n{step}")
            result = step.run()
            if isinstance(result, dict):  # a stage's counts
                _show(describe_result(result, step.leaves))
            elif step.verb == "weigh":
                _show(result)
        if checks and step.verb in checks:
            checks[step.verb](step.leaves)


def _show(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
