"""Bad arguments and bad input of verbs that came later: origins that grow, weights, vectors, documents, mining."""

import gzip
import json
import os
from pathlib import Path

from faults.attempts.attempt import AS_NOW, LATER, TRACEBACK, Place, attempt, flip, refuse_commands

WEIGH = "weigh --origin $R/grown --chunks $R/chunks"
VECTORS = "harvest-vectors --origin $R/grown --output $H/out"
TEACHER = "train surrogate --objective teacher --tokenizer $R/tokenizer --output $H/out"
CONTEXT_MODEL = "train context-model --chunks $R/chunks --output $H/out --max-steps 1"
MINE = "duplicates --surrogate $R/surrogate --input $R/lines.txt"
LABEL = "label --origin $R/origin --candidates 60 --output"
ADAPT = "adapt --corpus $R/texts.jsonl --minutes 0.02 --preset tiny --held-out 0.1 --output $H/out"
GROW = "index --origin $R/grown"

refuse_commands(
    LATER,
    "accepted and not used",
    [(f"{WEIGH} --signals words=nan", "finite number"), (f"{WEIGH} --signals words=-1", "at least 0")],
)
refuse_commands(
    LATER,
    AS_NOW,
    [
        ("weigh --origin $R/chunks --chunks $R/chunks", "expected a folder made by `ctxsim index`"),
        ("weigh --origin $R/grown --chunks $R/origin", "expected a folder made by `ctxsim chunk`"),
        (f"{WEIGH} --least-words nan", "--least-words must be a finite number"),
        (f"{WEIGH} --least-words 2", "--least-words must be .*at most 1"),
        (f"{WEIGH} --signals words", "words"),
        (f"{WEIGH} --signals telepathy=1", "telepathy"),
        (f"{WEIGH} --pairs 0", "--pairs must be at least 1"),
        (f"{WEIGH} --cache $R/lines.txt", "lines.txt"),
        (f"{GROW} --add", "expected one of --corpus and --chunks with --add"),
        (f"{GROW} --add --compact --corpus $R/more.jsonl", "expected one of --add, --delete and --compact"),
        (f"{GROW} --compact --chunks $R/chunks", "leave them out otherwise"),
        (f"{GROW} --compact --background 9", "--background cannot be changed in an index"),
        (f"{GROW} --delete nobody/1", "no document has the id 'nobody/1'"),
        (f"{GROW} --add --corpus $R/texts.jsonl", "are in .* already"),
        (f"{GROW} --add --chunks $R/grown", "expected a folder made by `ctxsim chunk`"),
        (f"{GROW} --add --corpus $R/nowhere.jsonl", "nowhere.jsonl' is not a local file or folder"),
        ("index --origin $R/chunks --compact", "expected a folder made by `ctxsim index`"),
        (f"{VECTORS} --signals contexts=1", "compares pairs and has no vectors of sentences; leave it out"),
        (f"{VECTORS} --signals words=1 --passages nan", "--passages must be a finite number"),
        (f"{VECTORS} --signals words=1 --passages 1.5", "--passages must be .*at most 1"),
        (f"{VECTORS} --signals words=1 --min-tokens 30 --max-tokens 3", "expected 4 sentences or more of 30 to 3 tok"),
        (f"{VECTORS} --signals words=1 --sentences 0", "--sentences must be at least 1"),
        (f"{TEACHER} --vectors $R/pairs", "expected a folder made by `ctxsim harvest-vectors`"),
        (f"{TEACHER}", "--objective teacher needs --vectors"),
        (f"{TEACHER} --vectors $R/vectors --pairs $R/pairs", "leave out --pairs"),
        (f"{TEACHER} --vectors $R/vectors --kind static --heads 2", "leave out --heads"),
        (f"{CONTEXT_MODEL} --init $R/generator", "expected a causal language model"),
        (f"{CONTEXT_MODEL} --init $R/nowhere", "nowhere"),
        (f"{CONTEXT_MODEL} --init $R/language-model --max-tokens 999", "is more than the 512 tokens"),
        (f"{CONTEXT_MODEL} --init $R/language-model --lora-rank 0", "--lora-rank must be at least 1"),
        (f"{MINE} --threshold nan", "--threshold must be a finite number"),
        (f"{MINE} --threshold 2", "--threshold must be .*at most 1"),
        (f"{MINE} --percentile 100", "--percentile must be .*below 100"),
        (f"{MINE} --max-pairs 0", "--max-pairs must be at least 1"),
        (f"{MINE} --output $H/out.exe", "--output must end in"),
        ("duplicates --surrogate $R/surrogate --input $R/nowhere", "cannot read .*nowhere"),
        ("duplicates --surrogate $R/surrogate --input $R/texts.jsonl", "found a JSON object"),
        ("cluster --surrogate $R/chunks --input $R/lines.txt", "expected"),
        (f"{LABEL} $H/out.txt", "--output must end in .tsv"),
        (f"{LABEL} $R/pairs.tsv", "exists and may hold labels"),
        (f"{LABEL} $H/out.tsv --surrogate $R/tokenizer", "expected"),
        ("plan --words 0", "--words must be at least 1"),
        (f"plan --words 1{'0' * 30}", "--words must be a whole number below"),
        ("plan --words 5 --context-model telepathy", "telepathy"),
        ("plan --words 5 --constants $R/lines.txt", "holds no constants"),
        ("plan --words 5 --constants $R", "holds no constants"),
        (f"{ADAPT} --context-model $R/chunks", "."),
        (f"{ADAPT} --context-model $R/generator", "must be a causal language model"),
        (f"{ADAPT} --start $R/chunks", "expected"),
        (f"{ADAPT} --start $R/nowhere", "nowhere"),
        ("app --adapted $R/chunks", "."),
        ("app --adapted $R/by-adapt --port 99999", "--port must be .*at most 65535"),
        ("search --index $R/documents --add $R/more.txt", "holds documents; add a file whose name ends in .jsonl"),
        ("search --index $R/search --add $R/more.jsonl", "holds sentences; choose another --index for documents"),
        ("search --index $R/search --delete 5", "holds sentences without ids"),
        ("search --index $R/documents --delete nobody", "has the id 'nobody'; nothing was deleted"),
        ("search --index $R/documents --add $R/texts.jsonl", "already; delete it first"),
        ("search --index $R/nowhere --delete 5", "nowhere"),
        ("search --index $R/documents a --top-k 0", "--top-k must be at least 1"),
        ("search --index $R/documents --queries $R/nowhere", "cannot read .*nowhere"),
        ("search --index $R/documents --surrogate $R/static a", "was made by the surrogate"),
        ("search --index $H/new --surrogate $R/surrogate --add $R/texts.jsonl --text-column body", "'body'"),
    ],
)

GOOD = {"id": "a", "title": "One", "text": "One sentence. And another."}
MADE = "1 documents added to .*which holds 1"


def _documents(place: Place, content: bytes, name: str = "docs.jsonl") -> str:
    path = place.here / name
    path.write_bytes(content)
    return place.run("search", "--index", place.here / "index", "--surrogate", place.root / "surrogate", "--add", path)


for what, row, how in (
    ("without text", {"id": "a"}, {"refused": "line 1: expected a column 'text'"}),
    ("whose text is null", GOOD | {"text": None}, {"refused": "line 1: expected text in column 'text'"}),
    ("whose text is empty", GOOD | {"text": ""}, {"answer": MADE}),
    ("whose id is a list", GOOD | {"id": [1]}, {"answer": MADE}),
    ("whose id is half a surrogate pair", GOOD | {"id": "\ud800"}, {"refused": "line 1 holds a lone surrogate"}),
    (
        "whose text is half a surrogate pair",
        GOOD | {"text": "One \ud800."},
        {"refused": "line 1 holds a lone surrogate"},
    ),
    ("whose title is half a surrogate pair", GOOD | {"title": "\udc80"}, {"refused": "line 1 holds a lone surrogate"}),
    ("whose text has a NUL", GOOD | {"text": "One \0 sentence."}, {"answer": MADE}),
):
    before = ("accepted" if "text" in what else TRACEBACK) if "surrogate" in what else AS_NOW
    attempt(LATER, f"`search --add docs.jsonl` of a document {what}", before, **how)(
        lambda place, row=row: _documents(place, json.dumps(row).encode())
    )

TWICE = (json.dumps(GOOD) + "\n").encode() * 2
for what, content, name, refusal in (
    ("two documents of one id", TWICE, "docs.jsonl", "the id 'a' is given twice"),
    ("no document", b"", "docs.jsonl", "there are none"),
    (
        "a cut .jsonl.gz",
        gzip.compress(os.urandom(9).hex().encode() + TWICE)[:-12],
        "docs.jsonl.gz",
        "cannot read|line",
    ),
    ("a .jsonl.gz that is none", b"not gzip at all", "docs.jsonl.gz", "cannot read"),
    ("a .parquet that is none", b"PAR1 not parquet", "docs.parquet", "cannot read .*expected a parquet file"),
    ("a list in place of an object", b"[1, 2]\n", "docs.jsonl", "line 1: expected a JSON object"),
    ("UTF-16", json.dumps(GOOD).encode("utf-16"), "docs.jsonl", "line 1: expected UTF-8"),
):
    attempt(LATER, f"`search --add {name}` of {what}", AS_NOW, refused=refusal)(
        lambda place, content=content, name=name: _documents(place, content, name)
    )


@attempt(LATER, "`search --add docs.jsonl.gz` with a flipped byte in the middle", AS_NOW, refused="docs.jsonl.gz")
def _flipped_gzip(place: Place) -> str:
    path = place.here / "docs.jsonl.gz"
    path.write_bytes(gzip.compress((place.root / "texts.jsonl").read_bytes()))
    flip(path)
    return _documents(place, path.read_bytes(), path.name)


for line, said in (
    (
        'mkfifo docs.jsonl; cat "$R/later.jsonl" > docs.jsonl & ctxsim search --surrogate "$R/surrogate" '
        "--index i --add docs.jsonl",
        "1 documents added to i, which holds 1",
    ),
    (
        'cp -r "$R/grown" o; cat "$R/later-long.jsonl" | ctxsim index --origin o --add --corpus - | grep segments',
        "segments +3",
    ),
    (
        'cat "$R/lines.txt" | ctxsim duplicates --surrogate "$R/surrogate" --input /dev/stdin --max-pairs 3 | head -1',
        "3 pairs among",
    ),
    (
        'printf "How?\\n\\nNobody.\\n" | ctxsim search --index "$R/documents" --queries - --top-k 1 | wc -l',
        "^3$",
    ),
):
    shown = line.replace('"$R/', "").replace('"', "").replace("|", "\\|")
    attempt(LATER, f"`{shown}`", "hangs" if "mkfifo" in line else AS_NOW, answer=said)(
        lambda place, line=line: place.shell(line)
    )


def _labelled(place: Place, rows: list[str], head: str = "sentence1\tsentence2\tlabel") -> str:
    path = place.here / "labels.tsv"
    path.write_text("\n".join([head, *rows]) + "\n")
    words = ("train", "surrogate", "--objective", "sts", "--init", place.root / "surrogate", "--max-steps", 1)
    return place.run(*words, "--labelled", path, "--output", place.here / "out").splitlines()[-1]


ROWS = [f"One sentence of {n}.\tAnother of {n}.\t{n % 5}" for n in range(60)]
for what, rows, head, refusal in (
    ("a label `nan`", [*ROWS, "a\tb\tnan"], None, "line 62: expected a label from 0 to 5, got 'nan'"),
    ("a label 7", [*ROWS, "a\tb\t7"], None, "line 62: expected a label from 0 to 5, got '7'"),
    (
        "a column label in front, and a row that is cut",
        ["3", *["1\ta\tb"] * 20],
        "label\tsentence1\tsentence2",
        "line 2: ",
    ),
    ("nothing", [], "", "expected a column 'sentence1'"),
):
    before = TRACEBACK if "cut" in what else AS_NOW
    attempt(LATER, f"`train surrogate --labelled` of a table with {what}", before, refused=refusal)(
        lambda place, rows=rows, head=head: _labelled(place, rows, *([] if head is None else [head]))
    )
attempt(
    LATER,
    "`train surrogate --labelled` of a table with a sentence of 200,000 letters",
    TRACEBACK,
    answer="is finished",
)(lambda place: _labelled(place, [*ROWS, f"{'long ' * 40_000}\tb\t3"]))


@attempt(
    LATER,
    "`duplicates --output out.html` of a document called `<script>`, with a tag in its text",
    AS_NOW,
    answer="^no script",
)
def _page(place: Place) -> str:
    path = place.here / "<script>alert(1)<"
    path.mkdir()
    text = "This <script>alert(1)</script> is a sentence of some words. "
    rows = [{"id": f"<img src=x onerror=alert({n})>", "text": f"{text} And so is this, number {n}."} for n in range(4)]
    (path / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    page = place.here / "out.html"
    words = ("duplicates", "--surrogate", place.root / "surrogate", "--corpus", path, "--threshold", 0.1)
    place.run(*words, "--output", page)
    found = page.read_text()
    return "tags" if "<script>alert" in found or "<img" in found else f"no script among {len(found) > 1000}"


def _constants(place: Place, content: object) -> str:
    path = place.here / "costs.json"
    path.write_text(json.dumps(content))
    return place.run("plan", "--words", 1000, "--constants", path)


SHIPPED = json.loads((Path(__file__).parents[3] / "ctxsim_hf/recipes/costs.json").read_text())
for changes in ({"parts": 5}, {"parts": {"chunk": []}}, {"words_per_chunk": "many"}, {"words_per_chunk": 0}):
    attempt(LATER, f"`plan --constants` with `{json.dumps(changes)}`", TRACEBACK, refused="holds no constants")(
        lambda place, changes=changes: _constants(place, SHIPPED | changes)
    )
attempt(LATER, "`plan --constants` of a list", TRACEBACK, refused="holds no constants")(
    lambda place: _constants(place, [])
)
