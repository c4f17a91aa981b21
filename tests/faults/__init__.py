"""Damage, kill and race everything that the commands write: `make test-faults`."""
