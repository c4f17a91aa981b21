"""A few faults of each kind, always the same ones; `make test-faults` tries hundreds."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_nothing_is_lost_and_no_answer_is_wrong() -> None:
    """In a process of its own, since it forks."""
    path = os.pathsep.join([str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "faults", "--few", "--damages", "24", "--kills", "6"]
    result = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "damaged folder" in result.stdout and "train-tokenizer" in result.stdout
    assert "traceback:" not in result.stdout
