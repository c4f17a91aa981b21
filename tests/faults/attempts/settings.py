"""Settings that cannot be, and arguments that contradict each other."""

from pathlib import Path

from ctxsim_hf.runtime.errors import UserError
from faults.attempts.attempt import LINE, TRACEBACK, Place, attempt, refuse_commands
from faults.command_lines import STEPS

ORIGIN = "similarity --origin $R/origin a b"
refuse_commands(
    "10",
    "nan, or 0",
    [
        (f"{ORIGIN} --lexical-weight nan", "--lexical-weight must be a finite number, got nan"),
        (f"{ORIGIN} --weights nan 1 1 1", "--weights must be a list in which each value is a finite number"),
        (f"{ORIGIN} --signals words=nan", "finite"),
        (f"{ORIGIN} --background-size 1", "--background-size must be at least 2, got 1"),
        (
            "harvest --origin $R/origin --pairs 9 --lexical-weight nan --output $H/out",
            "--lexical-weight must be a finite number",
        ),
    ],
)


@attempt("10", "`OriginSimilarity.from_pretrained(origin, ridge=inf)`", "0.0", refused="ridge must be a finite number")
def _ridge(place: Place) -> str:
    from ctxsim_hf import OriginSimilarity

    return str(OriginSimilarity.from_pretrained(place.root / "origin", ridge=float("inf")))


@attempt(
    "14",
    "`index --generator LIGHT SEQ2SEQ`",
    "used only the first",
    refused="two context models answer the term 'sentence': light_generator and generator; leave one out",
)
def _two_generators(place: Place) -> str:
    learned = ("--chunks", place.root / "chunks", "--tokenizer", place.root / "tokenizer", "--preset", "tiny", *STEPS)
    seq2seq, out = place.here / "seq2seq", place.here / "out"
    place.run("train", "generator", *learned, "--kind", "seq2seq", "--direction", "all", "--output", seq2seq)
    models = ("--generator", place.root / "generator", seq2seq)
    return place.run("index", "--chunks", place.root / "chunks", *models, "--output", out)


@attempt("15", "`metric.compute(..., weights=[1, 1, 1])`", "padded with 1", refused="weights. must be 4 numbers")
def _metric(place: Place) -> str:
    import evaluate

    metric = evaluate.load(str(Path(__file__).parents[3] / "metrics/origin"))
    sentences = {"predictions": ["One."], "references": ["Two."], "origin": str(place.root / "origin")}
    try:
        return str(metric.compute(**sentences, weights=[1, 1, 1]))
    except ValueError as error:  # as metrics raise
        raise UserError(str(error)) from error


@attempt("15", '`SearchIndex.add("abc")`', "added three letters", refused="expected a list")
def _letters(place: Place) -> str:
    from ctxsim_hf import SentenceEncoder
    from ctxsim_hf.surrogate.search_index import SearchIndex

    index = SearchIndex(place.copy("search"), SentenceEncoder.from_pretrained(place.root / "surrogate"))
    index.add("abc")
    return f"{len(index)} sentences"


refuse_commands(
    "15",
    "finished",
    [
        (
            "train discriminator --chunks $R/chunks --tokenizer $R/tokenizer --width 0 --output $H/out",
            "--width must be at least 1, got 0",
        )
    ],
)

CHUNK = "chunk --corpus $R/texts.jsonl --output"
refuse_commands(
    LINE,
    TRACEBACK,
    [
        (f"{CHUNK} $R/lines.txt", "expected the name of a folder to write, but .* is a file"),
        (f"{CHUNK} .", "expected the name of a folder to write, got '.'"),
        (f"{CHUNK} /", "expected the name of a folder to write, got '/'"),
        (f"{CHUNK} ''", "expected the name of a folder to write, got ''"),
        (f"{CHUNK} $H/$LONG", "File name too long"),
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
    LINE,
    TRACEBACK,
    [
        (f"{TRAIN} --epochs nan", "--epochs must be a finite number, got nan"),
        (f"{TRAIN} --learning-rate nan", "--learning-rate must be a finite number, got nan"),
        (f"{TRAIN} --learning-rate -1", "--learning-rate must be above 0, got -1.0"),
        (f"{TRAIN} --seed -1", "--seed must be at least 0 and below 4294967296, got -1"),
        (f"{TRAIN} --dropout 2", "--dropout must be at least 0 and below 1, got 2.0"),
        (f"{TRAIN} --direction all --heads 0", "--heads must be at least 1, got 0"),
    ],
)
refuse_commands(
    LINE,
    "accepted and not used",
    [
        (f"{TRAIN} --direction all --closed-form", "--closed-form is for --kind light"),
        ("similarity --surrogate $R/surrogate a b --output $H/x", "--output is for the scores of --pairs"),
    ],
)
for columns in ("sentences", "split", "chunk_id", "title,title"):
    refuse_commands(
        LINE,
        "chunk succeeded, readers failed",
        [
            (
                f"{CHUNK} $H/out --keep-columns {columns}",
                "--keep-columns cannot keep .*: chunks have a column of this name",
            )
        ],
    )
