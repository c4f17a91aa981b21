"""Faults, bad inputs and attacks that once got through, each tried again: `python -m faults --attempts`."""

from faults.attempts import (  # noqa: F401
    damaged_folders,
    inputs,
    lost,
    newer_folders,
    newer_verbs,
    opening,
    processes,
    settings,
    trust,
)
from faults.attempts.attempt import try_all

__all__ = ["try_all"]
