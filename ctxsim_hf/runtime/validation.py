"""Validation of settings against the types of their fields, whether they come from flags, Python or JSON.

A dataclass states its bounds in its annotations, e.g. `workers: Count` or `share: Annotated[float, Gt(0), Le(1)]`, and
calls `validate(self)` in `__post_init__`. HfArgumentParser sees the plain types behind the annotations.
"""

import math
import os
import types
from collections.abc import Collection
from dataclasses import dataclass, fields
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Le, Lt

from ctxsim_hf.runtime.errors import UserError


@dataclass(frozen=True, eq=False)  # compared by identity, since annotations must be hashable and a dict is not
class OneOf:
    """The allowed values of a field. Unlike those of `Literal`, they may come from a table, which may grow."""

    choices: Collection[str]


Count = Annotated[int, Ge(1)]
CountOrZero = Annotated[int, Ge(0)]
Seed = Annotated[int, Ge(0), Lt(2**32)]  # the range of NumPy
Positive = Annotated[float, Gt(0)]
NonNegative = Annotated[float, Ge(0)]
Share = Annotated[float, Ge(0), Lt(1)]  # of what is left out, so never everything
MAX_INT = 2**63  # numbers from here on do not fit into the arrays of any library

_TYPES = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "True or False",
    list: "a list",
    dict: "a dictionary",
}


def validate(settings: Any) -> None:
    """Refuse a dataclass with a value that has the wrong type, is out of bounds, or is not finite.

    The error names a field as a flag if it is one, that is, if it has a help text.
    """
    hints = _type_hints(settings.__class__)
    for field in fields(settings):
        name = f"--{field.name.replace('_', '-')}" if "help" in field.metadata else field.name
        check_value(name, getattr(settings, field.name), hints[field.name])


def check_value(name: str, value: Any, hint: Any) -> None:
    """Refuse an argument of a function as `validate` does a field, e.g. `check_value("top_k", top_k, Count)`."""
    if expected := _expected(value, hint):
        raise UserError(f"{name} must be {expected}, got {value!r}")


@cache
def _type_hints(settings: type) -> dict[str, Any]:
    return get_type_hints(settings, include_extras=True)


def _expected(value: Any, hint: Any) -> str | None:
    """Describe what a value of this type must be, or return None if the value conforms."""
    if get_origin(hint) is Annotated:
        plain, *rules = get_args(hint)
        if expected := _expected(value, plain):
            return expected
        checks = [_check(value, rule) for rule in rules]
        return None if all(obeyed for obeyed, _ in checks) else " and ".join(wording for _, wording in checks)
    if get_origin(hint) in (Union, types.UnionType):
        choices = [choice for choice in get_args(hint) if choice is not types.NoneType]
        wrong = [_expected(value, choice) for choice in choices]
        allowed = None in wrong or (value is None and types.NoneType in get_args(hint))
        return None if allowed else " or ".join(filter(None, wrong))
    if get_origin(hint) in (list, dict):
        if not isinstance(value, get_origin(hint)):
            return _TYPES[get_origin(hint)]
        items, kind = (value.values(), "dictionary") if isinstance(value, dict) else (value, "list")
        wrong = [expected for item in items if (expected := _expected(item, get_args(hint)[-1]))]
        return f"a {kind} in which each value is {wrong[0]}" if wrong else None
    return _expected_plain(value, hint)


def _expected_plain(value: Any, hint: type) -> str | None:
    if hint is float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            return _TYPES[float]
        return None if math.isfinite(value) else "a finite number"
    # A path stands for its name. To Python, True is an int; here it is not.
    right = isinstance(value, (str, os.PathLike) if hint is str else hint)
    if right and not (hint is int and isinstance(value, bool)):
        return f"a whole number below {MAX_INT}" if hint is int and abs(value) >= MAX_INT else None
    return _TYPES.get(hint, f"of the type {hint.__name__}")


def _check(value: Any, rule: Any) -> tuple[bool, str]:
    """Return whether a value obeys a rule, and the wording of the rule."""
    match rule:
        case OneOf(choices):
            return value in choices, f"one of {', '.join(choices)}"
        case Ge(limit):
            return value >= limit, f"at least {limit}"
        case Gt(limit):
            return value > limit, f"above {limit}"
        case Le(limit):
            return value <= limit, f"at most {limit}"
        case Lt(limit):
            return value < limit, f"below {limit}"
    raise TypeError(f"no rule for settings: {rule!r}")
