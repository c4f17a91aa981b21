"""A few faults of each kind, always the same ones; `make test-faults` tries hundreds."""

import os
import subprocess
import sys
from pathlib import Path

from ctxsim_hf.verbs import VERBS
from faults.folders import WITHOUT_OUTPUT, commands

TESTS = Path(__file__).parents[1]


def test_every_verb_is_killed_and_raced_or_has_a_reason_not_to_be() -> None:
    tried = commands(Path("root"))
    assert [verb for verb in VERBS if verb not in tried and verb not in WITHOUT_OUTPUT] == []
    assert [
        verb for verb in (*tried, *WITHOUT_OUTPUT) if verb not in VERBS or (verb in tried) == (verb in WITHOUT_OUTPUT)
    ] == []
    for verb, words in tried.items():
        assert " ".join(map(str, words(Path("out")))).startswith(f"{verb} ")


def test_nothing_is_lost_and_no_answer_is_wrong() -> None:
    """In a process of its own, since it forks."""
    path = os.pathsep.join([str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "faults", "--few", "--damages", "24", "--kills", "6"]
    result = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "damaged folder" in result.stdout and "train-tokenizer" in result.stdout
    assert "traceback:" not in result.stdout
