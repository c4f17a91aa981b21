"""A few faults of each kind, always the same ones; `make test-faults` tries hundreds."""

import os
import subprocess
import sys
from pathlib import Path

from ctxsim_hf.verbs import VERBS
from faults.command_lines import WITHOUT_OUTPUT, commands

TESTS = Path(__file__).parents[1]


def test_every_verb_is_killed_and_raced_or_has_a_reason_not_to_be() -> None:
    tried = commands(Path("root"))
    for verb in VERBS:
        assert any(_verb_of(way) == verb for way in tried) != (verb in WITHOUT_OUTPUT), verb
    for way, words in tried.items():
        line = " ".join(map(str, words(Path("out"))))
        assert _verb_of(way) in VERBS and line.startswith(_verb_of(way))
        assert all(word in line for word in way.split() if word.startswith("--"))


def _verb_of(way: str) -> str:
    """Return the verb of a way, which may go on with flags."""
    return way.partition(" --")[0]


def test_nothing_is_lost_and_no_answer_is_wrong() -> None:
    """In a process of its own, since it forks."""
    path = os.pathsep.join([str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "faults", "--few", "--damages", "24", "--kills", "6"]
    result = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "damaged folder" in result.stdout and "train-tokenizer" in result.stdout
    assert "traceback:" not in result.stdout
