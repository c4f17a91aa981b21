"""The command line: help and version at once, one plain line for what a user got wrong."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from made_up import make_text

from ctxsim_hf import __version__
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.verbs import VERBS

Run = Callable[..., tuple[int, str, str]]


def test_help_and_version(ctxsim: Run) -> None:
    code, out, _ = ctxsim("--help")
    assert code == 0
    assert all(name in out for name in VERBS)
    assert ctxsim("--version") == (0, f"ctxsim {__version__}\n", "")
    assert ctxsim()[1] == out


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_each_verb(ctxsim: Run, verb: str) -> None:
    code, out, _ = ctxsim(verb, "--help")
    assert code == 0
    assert f"usage: ctxsim {verb}" in out
    assert VERBS[verb].help in out
    assert "default: None" not in out and not re.search(r"--\w+_", out)


def test_version_needs_no_heavy_library() -> None:
    command = Path(sys.executable).with_name("ctxsim")
    out = subprocess.run([sys.executable, "-X", "importtime", command, "--version"], capture_output=True, text=True)
    assert out.stdout == f"ctxsim {__version__}\n"
    assert "ctxsim_hf.cli" in out.stderr
    assert not {"torch", "transformers", "pyarrow"} & {line.split("|")[-1].strip() for line in out.stderr.splitlines()}


def test_the_package_can_be_run() -> None:
    out = subprocess.run([sys.executable, "-m", "ctxsim_hf", "--version"], capture_output=True, text=True)
    assert (out.returncode, out.stdout) == (0, f"ctxsim {__version__}\n")


def test_errors_are_one_line_and_code_2(ctxsim: Run, tmp_path: Path) -> None:
    code, out, err = ctxsim("chunk", "--corpus", tmp_path / "none.txt", "--output", tmp_path / "out")
    assert (code, out) == (2, "")
    assert err.startswith("ctxsim chunk: ") and err.count("\n") == 1
    assert ctxsim("chop")[0] == 2
    assert ctxsim("chunk")[0] == 2
    with pytest.raises(UserError):
        ctxsim("--debug", "chop")


def test_a_mistyped_flag(ctxsim: Run) -> None:
    code, _, err = ctxsim("chunk", "--corpus", "a.txt", "--output", "out", "--held-owt", "0.1")
    assert (code, err) == (2, "ctxsim chunk: unknown argument '--held-owt'; did you mean --held-out?\n")
    assert "`ctxsim chunk --help` lists the flags" in ctxsim("chunk", "--corpus", "a", "--output", "b", "--zzz")[2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("chunk --output x", "the following arguments are required: --corpus; `ctxsim chunk --help` lists the flags"),
        ("encode --surrogate s --input i --output o --num-processes nan", "--num-processes: invalid int value: 'nan'"),
        ("search --index x --top-k 99999999999999999999 q", "--top-k must be a whole number below"),
        ("similarity a b --output x", "--output is for the scores of --pairs"),
    ],
)
def test_flags_that_cannot_be_parsed_are_told_in_one_line(ctxsim: Run, words: str, message: str) -> None:
    code, out, err = ctxsim(*words.split())
    assert (code, out) == (2, "") and message in err and err.count("\n") == 1


def test_a_reader_that_goes_away_ends_it_quietly(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "ctxsim_hf", "--help"]
    out = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (out.returncode, out.stderr) == (128 + signal.SIGPIPE, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_says_how_to_go_on(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "texts").mkdir()
    for i in range(200):
        (tmp_path / f"texts/{i:03}.txt").write_text(make_text(300, i))
    out = tmp_path / "out"
    words = [
        "chunk",
        "--corpus",
        str(tmp_path / "texts"),
        "--output",
        str(out),
        "--shard-chars",
        "20000",
        "--workers",
        "2",
    ]
    command = [Path(sys.executable).with_name("ctxsim"), *words]
    # Whoever runs the tests in the background has Ctrl-C ignored, and its children would inherit that.
    heeding = {"start_new_session": True, "preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **heeding) as process:
        while not list(tmp_path.glob("out.ctxsim-partial/output/data/*.parquet")):
            assert process.poll() is None
            time.sleep(0.01)
        os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.endswith("ctxsim chunk: interrupted; run the same command again to resume\n")
    assert subprocess.run(command).returncode == 0
    assert (out / "stage.json").exists()
