"""Faults, bad inputs and attacks that once got through, each tried again: `python -m faults --attempts`."""
