"""Faults, bad inputs and attacks that once got through, each tried again: `python -m faults --attempts`."""

from faults.attempts import damaged_folders, inputs, lost, opening, processes, settings, trust  # noqa: F401
from faults.attempts.attempt import try_all

__all__ = ["try_all"]
