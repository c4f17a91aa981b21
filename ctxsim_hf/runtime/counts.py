"""The counts of a stage, as lines for a reader."""

import json
from collections.abc import Mapping
from typing import Any


def format_counts(counts: Mapping[str, Any]) -> str:
    """Return one line for each count, in columns. Nested counts stand on one line, and the ends of an interval beside
    its figure."""
    ends = {f"{name}_{end}" for name in counts for end in ("low", "high") if f"{name}_{end}" in counts}
    shown = {name: value for name, value in counts.items() if name not in ends}
    width = max(map(len, shown), default=0)
    return "\n".join(
        f"{_words(name):<{width}}  {_value(value)}{_interval(name, counts)}" for name, value in shown.items()
    )


def _words(name: str) -> str:
    return name.replace("_", " ")


def _interval(name: str, counts: Mapping[str, Any]) -> str:
    low, high = counts.get(f"{name}_low"), counts.get(f"{name}_high")
    return "" if low is None or high is None else f" ({_value(low)} to {_value(high)})"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{_value(number)} {_words(name)}" for name, number in value.items()) or "0"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
    return json.dumps(value, ensure_ascii=False).strip('"')
