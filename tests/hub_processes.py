"""Fresh processes that know nothing but the address of a Hub."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loopback_hub import WRITER


def environment(endpoint: str, home: Path, token: str | None = WRITER, offline: bool = False) -> dict[str, str]:
    """Of a process that has never heard of anything: all caches are in `home`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    ours = {
        "HF_ENDPOINT": endpoint,
        "HF_HOME": str(home),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_OFFLINE": str(int(offline)),
        "HF_UPDATE_DOWNLOAD_COUNTS": "0",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    }
    return kept | ours | ({"HF_TOKEN": token} if token else {})


def run_python(code: str, env: Mapping[str, str], cwd: Path, *words: str) -> Any:
    """What a fresh process prints last, as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", code, *words], env=dict(env), cwd=cwd, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


COMMANDS = """
import contextlib, io, json, os, sys
from ctxsim_hf.cli import main
said = []
for token, words in json.loads(sys.argv[1]):
    os.environ["HF_TOKEN"] = token
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    said.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(said))
"""


def run_commands(
    commands: Sequence[tuple[str, Sequence[object]]], env: Mapping[str, str], cwd: Path
) -> list[tuple[int, str, str]]:
    """Run commands of ctxsim, each with a token, one after another in a fresh process: exit code, output and error."""
    wanted = json.dumps([[token, [str(word) for word in words]] for token, words in commands])
    return [tuple(said) for said in run_python(COMMANDS, env, cwd, wanted)]
