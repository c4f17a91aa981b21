"""Python and the shell: read-only caches, closed pipes, threads, kills."""

import sys
import threading
from typing import TYPE_CHECKING

from faults.attempts.attempt import LINE, TRACEBACK, Place, attempt, flip
from faults.children import command, run
from faults.command_lines import SETTINGS

if TYPE_CHECKING:
    from ctxsim_hf import OriginSimilarity

SYSTEMS = """
import os
import signal
from pathlib import Path
import numpy as np

class First:
    def similarity(self, first, second):
        with Path(__file__).with_name("asked").open("a") as file:
            file.write(type(self).__name__ + " ")
        if type(self) is Second and Path(__file__).with_name("kill").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return np.array([len(set(a) & set(b)) / len(set(a) | set(b)) for a, b in zip(first, second)])

class Second(First): pass
"""


@attempt(LINE, "`HF_HOME=/proc/none similarity --origin`", TRACEBACK, answer=r"^1\.0000")
def _read_only_home(place: Place) -> str:
    return place.shell(
        f'ctxsim similarity --origin "$R/origin" {" ".join(map(str, SETTINGS))} "$(sed -n 1p "$R/lines.txt")" '
        '"$(sed -n 1p "$R/lines.txt")"',
        HF_HOME="/proc/none",
    )


@attempt(LINE, "`contexts \\| head -1`", TRACEBACK, answer="^\\S")
def _head(place: Place) -> str:
    return place.shell('set +o pipefail; ctxsim contexts --chunks "$R/chunks" --number 5000 | head -1')


def _origin(place: Place) -> "OriginSimilarity":
    from ctxsim_hf import OriginSimilarity

    return OriginSimilarity.from_pretrained(place.root / "origin", num_contexts=4, background_size=12)


@attempt(LINE, "`origin.similarity(None, ['a'])`", TRACEBACK, refused="expected .*, got")
def _none(place: Place) -> str:
    return str(_origin(place).similarity(None, ["a"]))


@attempt(LINE, "`origin.similarity` of generators", TRACEBACK, answer=r"\[1\. 1\.\]")
def _generators(place: Place) -> str:
    texts = (place.root / "lines.txt").read_text().splitlines()[:2]
    return str(_origin(place).similarity(iter(texts), iter(texts)).round(4))


@attempt(
    LINE, "`origin.similarity` by 8 threads, with room for 2 remembered sets", "KeyError", answer="8 threads, 1 answer"
)
def _threads(place: Place) -> str:
    origin = _origin(place)
    origin.contexts.sets.max_remembered = 2
    lines = (place.root / "lines.txt").read_text().splitlines()[:12]
    found: list[bytes] = []

    def ask() -> None:
        found.extend(origin.similarity(lines, lines[::-1]).tobytes() for _ in range(3))

    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return f"{len(found) // 3} threads, {len(set(found))} answer"


@attempt(
    LINE,
    "an evaluation that is killed after its first system",
    "all of it was lost",
    answer="^killed; then asked: First Second Second ; equal results",
)
def _evaluation(place: Place) -> str:
    (place.here / "systems_of_mine.py").write_text(SYSTEMS)
    sys.path.insert(0, str(place.here))
    systems = ("python:systems_of_mine:First", "python:systems_of_mine:Second")
    words = ("evaluate", *systems, "--label-free", "--chunks", place.root / "chunks", "--limit", 20, "--output")
    (place.here / "kill").touch()
    killed = run(command((*words, place.here / "out")))
    (place.here / "kill").unlink()
    place.run(*words, place.here / "out")
    asked = (place.here / "asked").read_text()
    place.run(*words, place.here / "whole")
    equal = (place.here / "out/results.json").read_bytes() == (place.here / "whole/results.json").read_bytes()
    return f"{killed.how}; then asked: {asked}; " + ("equal results" if equal else "other results")


def _kept_answers(place: Place) -> str:
    (place.here / "systems_of_mine.py").write_text(SYSTEMS)
    sys.path.insert(0, str(place.here))
    systems = ("python:systems_of_mine:First", "python:systems_of_mine:Second")
    words = ("evaluate", *systems, "--label-free", "--chunks", place.root / "chunks", "--limit", 20, "--output")
    (place.here / "kill").touch()
    run(command((*words, place.here / "out")))
    (place.here / "kill").unlink()
    for kept in (place.here / "out/unfinished").iterdir():
        flip(kept)
    place.run(*words, place.here / "out")
    return f"asked: {(place.here / 'asked').read_text()}"


attempt(LINE, "the same, with a flipped bit in what was kept", TRACEBACK, answer="asked: First Second First Second$")(
    _kept_answers
)
