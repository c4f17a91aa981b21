"""Tracebacks where one plain line is promised."""

import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from faults.attempts.attempt import Place, attempt, refuse_commands
from faults.attempts.lost import cut, flip
from faults.children import command, run
from faults.folders import SETTINGS, commands

ROW = "lines"
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
BEFORE = "traceback"


@attempt(ROW, "`HF_HOME=/proc/none similarity --origin`", BEFORE, answer=r"^1\.0000")
def _read_only_home(place: Place) -> str:
    return place.shell(
        f'ctxsim similarity --origin "$R/origin" {" ".join(map(str, SETTINGS))} "$(sed -n 1p "$R/lines.txt")" '
        '"$(sed -n 1p "$R/lines.txt")"',
        HF_HOME="/proc/none",
    )


CHUNK = "chunk --corpus $R/texts.jsonl --output"
refuse_commands(
    ROW,
    BEFORE,
    [
        (f"{CHUNK} $R/lines.txt", "expected the name of a folder to write, but .* is a file"),
        (f"{CHUNK} .", "expected the name of a folder to write, got '.'"),
        (f"{CHUNK} /", "expected the name of a folder to write, got '/'"),
        (f"{CHUNK} ''", "expected the name of a folder to write, got ''"),
        (f"{CHUNK} $H/{'x' * 300}", "File name too long"),
        (f"{CHUNK} /proc/out", "cannot make the folder '/proc/out.ctxsim-partial'"),
        ("chunk --corpus /proc/self/mem --output $H/out", "/proc/self/mem"),
        ("encode --surrogate $R/surrogate --input /proc/self/mem --output $H/out.npy", "cannot read '/proc/self/mem'"),
        ("similarity --surrogate $R/surrogate --pairs $R --output $H/out.tsv", "cannot read .*: Is a directory"),
        ("adapt --corpus $R/texts.jsonl --minutes nan --output $H/out", "--minutes must be a finite number, got nan"),
        ("adapt --corpus $R/texts.jsonl --minutes inf --output $H/out", "--minutes must be a finite number, got inf"),
    ],
)
TRAIN = "train generator --chunks $R/chunks --tokenizer $R/tokenizer --output $H/out"
refuse_commands(
    ROW,
    BEFORE,
    [
        (f"{TRAIN} --epochs nan", "--epochs must be a finite number, got nan"),
        (f"{TRAIN} --learning-rate nan", "--learning-rate must be a finite number, got nan"),
        (f"{TRAIN} --learning-rate -1", "--learning-rate must be above 0, got -1.0"),
        (f"{TRAIN} --seed -1", "--seed must be at least 0 and below 4294967296, got -1"),
        (f"{TRAIN} --dropout 2", "--dropout must be at least 0 and below 1, got 2.0"),
        (f"{TRAIN} --direction all --heads 0", "--heads must be at least 1, got 0"),
        (f"{TRAIN} --direction all --closed-form", "--closed-form is for --kind light"),
        ("similarity --surrogate $R/surrogate a b --output $H/x", "--output is for the scores of --pairs"),
    ],
)
for columns in ("sentences", "split", "chunk_id", "title,title"):
    refuse_commands(
        ROW,
        "chunk succeeded, readers failed",
        [
            (
                f"{CHUNK} $H/out --keep-columns {columns}",
                "--keep-columns cannot keep .*: chunks have a column of this name",
            )
        ],
    )


def _partial(place: Place, *more: object) -> str:
    """Go on with a run whose unfinished stage.json is damaged."""
    partial = place.copy("resumed.ctxsim-partial")
    (partial / "output/stage.json").write_text('{"command": [')
    return place.run(*commands(place.root)["train discriminator"](place.here / "resumed"), *more)


attempt(ROW, "an unfinished folder whose stage.json is damaged", BEFORE, refused="its stage.json is damaged")(_partial)
attempt(ROW, "the same with `--overwrite`", BEFORE, answer="is finished")(lambda place: _partial(place, "--overwrite"))


@attempt(ROW, "`adapt` into a folder whose adapt.json is damaged", BEFORE, refused="adapt.json' is damaged")
def _adapt_json(place: Place) -> str:
    out = place.here / "out"
    out.mkdir()
    (out / "adapt.json").write_text('{"corpus": ')
    return place.run("adapt", "--corpus", place.root / "texts.jsonl", "--minutes", 0.02, "--output", out)


def _parquet(place: Place, change: Callable[[Path], None], *more: object) -> str:
    path = place.here / "docs.parquet"
    rows = [json.loads(line) for line in (place.root / "texts.jsonl").open()]
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=8, write_page_checksum=True)
    change(path)
    said = place.run("chunk", "--corpus", path, "--output", place.here / "out", *more)
    return "; ".join(
        " ".join(line.split()) for line in said.splitlines() if "skip" in line or "damaged" in line or "UTF" in line
    )


def _bad_utf8(path: Path) -> None:
    texts = [b"Good text. It goes on. And on.", b"Bad \xff text. It goes on. And on."]
    column = pa.StringArray.from_buffers(2, pa.array(texts).buffers()[1], pa.array(texts).buffers()[2])
    pq.write_table(pa.table({"text": column}), path)


attempt(ROW, "`chunk` of parquet with a flipped byte", BEFORE, refused="docs.parquet")(
    lambda place: _parquet(place, flip)
)
attempt(ROW, "the same with `--skip-bad`", BEFORE, answer="damaged parquet")(
    lambda place: _parquet(place, flip, "--skip-bad")
)
attempt(ROW, "`chunk --skip-bad` of parquet with bad UTF-8", BEFORE, answer="not UTF-8")(
    lambda place: _parquet(place, _bad_utf8, "--skip-bad")
)


def _nested(place: Place, *more: object) -> str:
    path = place.here / "docs.jsonl"
    deep = '{"text": ' + "[" * 100_000 + "]" * 100_000 + "}\n"
    path.write_text(deep + (place.root / "texts.jsonl").read_text())
    said = place.run("chunk", "--corpus", path, "--output", place.here / "out", *more)
    return "; ".join(" ".join(line.split()) for line in said.splitlines() if "JSON" in line or "skip" in line)


attempt(ROW, "`chunk` of deeply nested JSON", BEFORE, refused="line 1: .*JSON")(_nested)
attempt(ROW, "the same with `--skip-bad`", BEFORE, answer="JSON")(lambda place: _nested(place, "--skip-bad"))


def _without_record(place: Place, kind: str, name: str, content: bytes | None) -> str:
    """Damage a file of a folder that has no stage.json, such as one of somebody else."""
    folder = place.copy(kind)
    (folder / "stage.json").unlink(missing_ok=True)
    cut(folder / name) if content is None else (folder / name).write_bytes(content)
    flag = "--surrogate" if kind in ("surrogate", "onnx") else "--index"
    verb = ("similarity", flag, folder, "a", "b") if flag == "--surrogate" else ("search", flag, folder, "a")
    return place.run(*verb)


for kind, name, content in (
    ("surrogate", "config.json", None),
    ("surrogate", "config.json", b'{"model_type": 5}'),
    ("surrogate", "config.json", b"[]"),
    ("surrogate", "tokenizer.json", None),
    ("surrogate", "tokenizer_config.json", b"[1]"),
    ("surrogate", "model.safetensors", None),
    ("surrogate", "modules.json", b'{"type": 1}'),
    ("surrogate", "sentence_bert_config.json", b"[]"),
    ("surrogate", "1_Pooling/config.json", b"5"),
    ("onnx", "model.onnx", None),
    ("onnx", "tokenizer.json", None),
    ("onnx", "onnx_surrogate.json", b"[]"),
    ("search", "index.json", b"[]"),
    ("search", "index.json", b'{"rows": "x"}'),
):
    what = "cut" if content is None else f"`{content.decode()}`"
    attempt(ROW, f"{kind} without stage.json, `{name}` {what}", BEFORE, refused=".")(
        lambda place, kind=kind, name=name, content=content: _without_record(place, kind, name, content)  # type: ignore[misc]
    )


def _wrong_types(place: Place, **values: object) -> str:
    folder = place.copy("chunks")
    record = {k: v for k, v in json.loads((folder / "stage.json").read_text()).items() if k != "xxh3_128"}
    (folder / "stage.json").write_text(json.dumps(record | values))
    return place.run("contexts", "--chunks", folder)


for values in ({"files": []}, {"files": {"a": 5}}, {"arguments": 3}, {"command": None}, {"counts": 7}):
    attempt(ROW, f"stage.json with `{json.dumps(values)}`", BEFORE, refused="stage.json' is damaged|made by")(
        lambda place, values=values: _wrong_types(place, **values)  # type: ignore[misc]
    )


@attempt(ROW, "a cached `.npy` that is cut", BEFORE, answer="the same")
def _cached(place: Place) -> str:
    from faults.probes import _hugging_face_cache

    before = _hugging_face_cache(place.root, place.root)
    kept = {path: path.read_bytes() for path in (place.root / "home/ctxsim").rglob("*.npy")}
    try:
        for path in kept:
            cut(path)
        return "the same" if _hugging_face_cache(place.root, place.root) == before else "another"
    finally:
        for path, content in kept.items():
            path.write_bytes(content)


@attempt(ROW, "`contexts \\| head -1`", BEFORE, answer="^\\S")
def _head(place: Place) -> str:
    return place.shell('set +o pipefail; ctxsim contexts --chunks "$R/chunks" --number 5000 | head -1')


@attempt(ROW, "`chunk` of a file whose name is not UTF-8", BEFORE, answer="is finished")
def _name(place: Place) -> str:
    path = os.fsencode(place.here) + b"/caf\xe9.txt"
    with open(path, "w") as file:
        file.write("One sentence is here. Another follows it. And a third one.\n" * 40)
    said = place.run("chunk", "--corpus", os.fsdecode(path), "--output", place.here / "out")
    place.run("contexts", "--chunks", place.here / "out")
    return said.splitlines()[-1]


def _origin(place: Place) -> "object":
    from ctxsim_hf import OriginSimilarity

    return OriginSimilarity.from_pretrained(place.root / "origin", num_contexts=4, background_size=12)


@attempt(ROW, "`origin.similarity(None, ['a'])`", BEFORE, refused="expected .*, got")
def _none(place: Place) -> str:
    return str(_origin(place).similarity(None, ["a"]))  # type: ignore[attr-defined]


@attempt(ROW, "`origin.similarity` of generators", BEFORE, answer=r"\[1\. 1\.\]")
def _generators(place: Place) -> str:
    texts = (place.root / "lines.txt").read_text().splitlines()[:2]
    return str(_origin(place).similarity(iter(texts), iter(texts)).round(4))  # type: ignore[attr-defined]


@attempt(
    ROW, "`origin.similarity` by 8 threads, with room for 2 remembered sets", "KeyError", answer="8 threads, 1 answer"
)
def _threads(place: Place) -> str:
    origin = _origin(place)
    origin.contexts.sets.max_remembered = 2  # type: ignore[attr-defined]
    lines = (place.root / "lines.txt").read_text().splitlines()[:12]
    found: list[bytes] = []

    def ask() -> None:
        found.extend(origin.similarity(lines, lines[::-1]).tobytes() for _ in range(3))  # type: ignore[attr-defined]

    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return f"{len(found) // 3} threads, {len(set(found))} answer"


@attempt(
    ROW,
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


attempt(
    ROW, "the same, with a flipped bit in what was kept", "not tried", answer="asked: First Second First Second $"
)(_kept_answers)


@attempt(ROW, "a document above a million characters, held out or not", "could be on both sides", answer="^1 side$")
def _long_document(place: Place) -> str:
    from ctxsim_hf import read_chunks

    path = place.here / "docs.jsonl"
    with path.open("w") as file:
        for number in range(8):
            text = " ".join(f"This is sentence {n} of document {number}, long enough." for n in range(200))
            file.write(json.dumps({"id": str(number), "text": text}) + "\n")
    place.run(
        "chunk", "--corpus", path, "--max-document-chars", 1000, "--held-out", 0.5, "--output", place.here / "out"
    )
    sides: dict[str, set[str]] = {}
    for split in ("train", "held_out"):
        for row in read_chunks(place.here / "out", split):
            sides.setdefault(row["doc_id"].split("~")[0], set()).add(split)
    worst = max(map(len, sides.values()))
    return f"{worst} side" + "s" * (worst > 1)
