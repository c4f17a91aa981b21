"""The counts of a stage, as lines for a reader."""

import json
from collections.abc import Mapping
from typing import Any


def format_counts(counts: Mapping[str, Any]) -> str:
    """Return one line for each count, in columns; nested counts stand on one line."""
    width = max(map(len, counts), default=0)
    return "\n".join(f"{_words(name):<{width}}  {_value(value)}" for name, value in counts.items())


def _words(name: str) -> str:
    return name.replace("_", " ")


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{_value(number)} {_words(name)}" for name, number in value.items()) or "0"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
    return json.dumps(value, ensure_ascii=False).strip('"')
