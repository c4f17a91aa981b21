"""Data that was lost."""

import os
import threading
from pathlib import Path

import numpy as np
from small_harvest import contents

from ctxsim_hf.runtime.errors import UserError
from faults.attempts.attempt import NOT_TRIED, Place, attempt, cut
from faults.command_lines import commands
from faults.kills import NEIGHBOURS


def _add_to_damaged(place: Place, name: str, delete: bool = False) -> str:
    index = place.copy("search")
    if delete:
        (index / name).unlink()
    else:
        cut(index / name)
    before = contents(index)
    try:
        return place.run("search", "--index", index, "--surrogate", place.root / "surrogate", "--add", _lines(place))
    finally:
        if contents(index) != before:
            raise RuntimeError("the index was changed")


def _lines(place: Place) -> Path:
    path = place.here / "more.txt"
    path.write_text("One more sentence.\n")
    return path


for name in ("ends.i64", "vectors.f32", "sentences.utf8"):
    attempt(
        "1",
        f"`search --add` to an index whose `{name}` is cut in half",
        "wiped it, or filled it up with zeros, and said that all is well",
        refused=f"{name}' is damaged: expected .* bytes, found .*; remove the index and add its sentences again",
    )(lambda place, name=name: _add_to_damaged(place, name))
attempt(
    "1", "the same without `index.json`", "wiped it", refused="has vectors.f32 but no index.json; remove the index"
)(lambda place: _add_to_damaged(place, "index.json", delete=True))


@attempt(
    "2",
    f"`chunk --output out` beside {', '.join(f'`{name}`' for name in NEIGHBOURS)}",
    "deleted them",
    answer="all there: mine mine mine mine mine mine",
)
def _neighbours(place: Place) -> str:
    for name in NEIGHBOURS:
        (place.here / name).parent.mkdir(exist_ok=True)
        (place.here / name).write_text("mine")
    for _ in range(2):
        place.run(*commands(place.root)["chunk"](place.here / "out"), "--overwrite")
    return "all there: " + " ".join((place.here / name).read_text() for name in NEIGHBOURS)


@attempt(
    "2",
    "`chunk --output out` beside a folder `out.ctxsim-partial` of the user",
    NOT_TRIED,
    refused="out.ctxsim-partial' was not made by ctxsim, which needs this name; move it away and run again",
)
def _our_name(place: Place) -> str:
    (place.here / "out.ctxsim-partial").mkdir()
    (place.here / "out.ctxsim-partial/thesis.txt").write_text("mine")
    return place.run(*commands(place.root)["chunk"](place.here / "out"))


@attempt(
    "2",
    "`chunk --overwrite` of a folder with a file of the user",
    "dropped the file without a word",
    refused="holds files that the command which made it did not write: notes.txt; move them away",
)
def _foreign(place: Place) -> str:
    chunks = place.copy("chunks")
    (chunks / "notes.txt").write_text("mine")
    return place.run("chunk", "--corpus", place.root / "texts.jsonl", "--output", chunks, "--overwrite")


@attempt(
    "2",
    "`evaluate --output` of a folder with a `results.md` of the user",
    NOT_TRIED,
    refused="results.md' was not written by ctxsim evaluate and would be replaced; move it away",
)
def _results(place: Place) -> str:
    (place.here / "results.md").write_text("mine")
    free = ("--label-free", "--chunks", place.root / "chunks", "--limit", 20)
    try:
        return place.run("evaluate", "tfidf", *free, "--output", place.here)
    finally:
        if (place.here / "results.md").read_text() != "mine":
            raise RuntimeError("it was replaced")


def _same(place: Place, *words: object) -> str:
    path = place.here / "lines.tsv"
    path.write_text("".join(f"A sentence of five words, {number}.\tAnother.\n" for number in range(9)))
    before = path.read_bytes()
    try:
        return place.run(*(path if word == "FILE" else word for word in words))
    finally:
        if path.read_bytes() != before:
            raise RuntimeError("the input was changed")


for line, before in (
    ("encode --input FILE --output FILE", "overwrote the input"),
    ("similarity --pairs FILE --output FILE", NOT_TRIED),
    ("duplicates --input FILE --output FILE", NOT_TRIED),
    ("cluster --input FILE --output FILE", NOT_TRIED),
):
    attempt("3", f"`{line}`", before, refused="is read and would be overwritten; choose another --output")(
        lambda place, line=line: _same(place, *line.split(), "--surrogate", place.root / "surrogate")
    )


@attempt(
    "4", "two `encode` on one output at once", "the first wrote the other's rows", refused="another run is writing"
)
def _two_encoders(place: Place) -> str:
    """The first reads a pipe that stays open; it has rows of its own, and keeps them."""
    pipe, output = place.here / "pipe", place.here / "out.npy"
    os.mkfifo(pipe)
    words = ("encode", "--surrogate", place.root / "surrogate", "--output", output)
    first = threading.Thread(target=place.run, args=(*words, "--input", pipe))
    first.start()
    with pipe.open("w") as writer:
        writer.write("One.\n" * 40)
        writer.flush()
        while not list(place.here.glob("out.npy.ctxsim-partial/lock")):
            pass
        try:
            place.run(*words, "--input", place.root / "lines.txt")
        except UserError as error:
            refusal = error
    first.join()
    if np.load(output).shape[0] != 40:
        raise RuntimeError("the first has other rows")
    raise refusal
