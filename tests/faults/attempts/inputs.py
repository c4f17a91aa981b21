"""Input that is read: pipes, byte order marks, scripts without spaces, damaged files, odd names."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from faults.attempts.attempt import LINE, NOT_TRIED, TRACEBACK, Place, attempt, flip
from faults.command_lines import SETTINGS


@attempt("8", "`similarity --pairs` of a file with a byte order mark, equal sentences", "0.27", answer="\t1.000000")
def _byte_order_mark(place: Place) -> str:
    path = place.here / "pairs.tsv"
    path.write_text("\ufeffNobody saw it.\tNobody saw it.\n")
    return place.run("similarity", "--surrogate", place.root / "surrogate", "--pairs", path)


for line, said, before in (
    (
        'ctxsim encode --surrogate "$R/surrogate" --input <(head -3 "$R/lines.txt") --output out.npy',
        "wrote 3 vec",
        "0",
    ),
    (
        'head -3 "$R/lines.txt" | ctxsim encode --surrogate "$R/surrogate" --input /dev/stdin --output o',
        "wrote 3",
        "0",
    ),
    (
        'head -3 "$R/lines.txt" | ctxsim search --surrogate "$R/surrogate" --add /dev/stdin --index i',
        "3 sentences",
        "0",
    ),
    (
        'mkfifo p; head -3 "$R/lines.txt" > p & ctxsim encode --surrogate "$R/surrogate" --input p --output out.npy',
        "wrote 3 vectors",
        "hangs",
    ),
    (
        'head -3 "$R/texts.jsonl" | ctxsim chunk --corpus - --output out | grep kept',
        "kept +3",
        NOT_TRIED,
    ),
):
    shown = line.replace('"$R/', "").replace('"', "").replace("|", "\\|")
    attempt("9", f"`{shown}`", before, answer=said)(lambda place, line=line: place.shell(line))


def _adapted(place: Place, language: str, letters: str, number: int) -> str:
    """Adapt to documents in a script without spaces, and compare a sentence with itself."""
    rng = np.random.default_rng(0)
    end = "。" if language == "zh" else " "
    texts = [end.join("".join(rng.choice(list(letters), 14)) for _ in range(12)) + end for _ in range(number)]
    (place.here / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    out = place.here / "out"
    minutes = ("--preset", "tiny", "--held-out", 0.1, "--minutes", 0.02, "--workers", 1)
    corpus = ("--corpus", place.here / "texts.jsonl", "--language", language)
    place.run("adapt", *corpus, *minutes, "--output", out)
    sentence = texts[0].split(end)[0]
    return place.run("similarity", "--origin", out / "ctxsim/origin-tiny", *SETTINGS, sentence, sentence)


CHINESE = "天地玄黃宇宙洪荒日月盈昃辰宿列張寒來暑往秋收冬藏閏餘成歲律呂調陽雲騰致雨露結為霜金生麗水玉出崑岡"
THAI = "กขคงจฉชซญดตถทธนบปผพฟมยรลวสหอ"
attempt("11", "`adapt` to Chinese, then a sentence and itself", "too few sentences; 0.0000", answer="^1.0000")(
    lambda place: _adapted(place, "zh", CHINESE, 80)
)
attempt("11", "`adapt` to Thai, then a sentence and itself", "too short", answer="^1.0000")(
    lambda place: _adapted(place, "th", THAI, 240)
)


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


attempt(LINE, "`chunk` of parquet with a flipped byte", TRACEBACK, refused="docs.parquet")(
    lambda place: _parquet(place, flip)
)
attempt(LINE, "the same with `--skip-bad`", TRACEBACK, answer="damaged parquet")(
    lambda place: _parquet(place, flip, "--skip-bad")
)
attempt(LINE, "`chunk --skip-bad` of parquet with bad UTF-8", TRACEBACK, answer="not UTF-8")(
    lambda place: _parquet(place, _bad_utf8, "--skip-bad")
)


def _nested(place: Place, *more: object) -> str:
    path = place.here / "docs.jsonl"
    deep = '{"text": ' + "[" * 100_000 + "]" * 100_000 + "}\n"
    path.write_text(deep + (place.root / "texts.jsonl").read_text())
    said = place.run("chunk", "--corpus", path, "--output", place.here / "out", *more)
    return "; ".join(" ".join(line.split()) for line in said.splitlines() if "JSON" in line or "skip" in line)


attempt(LINE, "`chunk` of deeply nested JSON", TRACEBACK, refused="line 1: .*JSON")(_nested)
attempt(LINE, "the same with `--skip-bad`", TRACEBACK, answer="JSON")(lambda place: _nested(place, "--skip-bad"))


@attempt(LINE, "`chunk` of a file whose name is not UTF-8", TRACEBACK, answer="is finished")
def _name(place: Place) -> str:
    path = place.here / os.fsdecode(b"caf\xe9.txt")
    path.write_text("One sentence is here. Another follows it. And a third one.\n" * 40)
    said = place.run("chunk", "--corpus", path, "--output", place.here / "out")
    place.run("contexts", "--chunks", place.here / "out")
    return said.splitlines()[-1]


@attempt(LINE, "a document above a million characters, held out or not", "could be on both sides", answer="^1 side$")
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
