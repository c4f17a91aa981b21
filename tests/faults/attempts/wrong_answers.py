"""Answers that were wrong without a word."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ctxsim_hf.runtime.errors import UserError
from faults.attempts.attempt import Place, attempt, refuse_commands
from faults.attempts.lost import cut, flip
from faults.folders import SETTINGS, STEPS, commands

CHANGED = "is damaged: its content changed; make the folder again with --overwrite"


def _train_surrogate(place: Place) -> str:
    pairs = place.copy("pairs")
    flip(next(pairs.glob("data/train-*.parquet")))
    tokenizer = ("--tokenizer", place.root / "tokenizer", "--preset", "tiny")
    return place.run("train", "surrogate", "--pairs", pairs, *tokenizer, *STEPS, "--output", place.here / "out")


def _train_tokenizer(place: Place) -> str:
    chunks = place.copy("chunks")
    flip(next(chunks.glob("data/*.parquet")))
    return place.run("train-tokenizer", "--chunks", chunks, "--vocab-size", 700, "--output", place.here / "out")


attempt("5", "`train surrogate` on pairs with one flipped bit", "finished", refused=CHANGED)(_train_surrogate)
attempt("5", "`train-tokenizer` on chunks with one flipped bit", "finished", refused=CHANGED)(_train_tokenizer)


def _similarity(place: Place, change: Callable[[Path], None], kind: str = "surrogate", *more: object) -> str:
    folder = place.copy(kind)
    change(folder)
    settings = SETTINGS if kind == "origin" else ()
    return place.run("similarity", f"--{kind}", folder, *settings, *more, "Nobody saw it.", "It was not seen.")


def _rewrite(name: str, **values: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).write_text(json.dumps(json.loads((folder / name).read_text()) | values))

    return change


def _another_tokenizer(folder: Path) -> None:
    text = (folder / "tokenizer.json").read_text()
    (folder / "tokenizer.json").write_text(text.replace("a", "\0").replace("e", "a").replace("\0", "e"))


DAMAGED = "is damaged: (its content changed|expected .* bytes, found .*); make the folder again with --overwrite"
for what, change in {
    "one flipped bit in `model.safetensors`": lambda folder: flip(folder / "model.safetensors"),
    "other heads in `config.json`": _rewrite("config.json", num_attention_heads=4),
    "other layers in `config.json`": _rewrite("config.json", num_hidden_layers=1),
    "another activation in `config.json`": _rewrite("config.json", hidden_act="relu"),
    "another tokenizer of equal size": _another_tokenizer,
    "`max_seq_length` 1": _rewrite("sentence_bert_config.json", max_seq_length=1),
}.items():
    attempt("6", f"`similarity --surrogate` with {what}", "another number, or nan", refused=DAMAGED)(
        lambda place, change=change: _similarity(place, change)  # type: ignore[misc]
    )


def _search(place: Place, name: str, change: Callable[[Path], None]) -> str:
    index = place.copy("search")
    change(index / name)
    return place.run("search", "--index", index, "Nobody saw it.")


attempt("7", "`search` with one bit of `vectors.f32` flipped", "3e34", refused="vectors.f32' is damaged: its content")(
    lambda place: _search(place, "vectors.f32", flip)
)
attempt("7", "`search` with `sentences.utf8` cut", "empty hits", refused="sentences.utf8' is damaged: expected")(
    lambda place: _search(place, "sentences.utf8", cut)
)


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
        "not tried",
    ),
):
    shown = line.replace('"$R/', "").replace('"', "").replace("|", "\\|")
    attempt("9", f"`{shown}`", before, answer=said)(lambda place, line=line: place.shell(line))  # type: ignore[misc]


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


@attempt("10", "`origin.json` with a ridge of NaN", "0.0", refused="origin.json' is damaged")
def _ridge_in_json(place: Place) -> str:
    return _similarity(place, _rewrite("origin.json", ridge=float("nan")), "origin")


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


def _resume(place: Place, change: Callable[[Path], None]) -> str:
    partial = place.copy("resumed.ctxsim-partial")
    change(sorted(partial.glob("output/checkpoints/step-*[0-9]"))[-1])
    return place.run(*commands(place.root)["train discriminator"](place.here / "resumed"))


attempt(
    "12", "training on from a checkpoint with a cut random state", "ignored", refused="step-.* is damaged|damaged"
)(lambda place: _resume(place, lambda step: cut(next(step.glob("random_states*")))))
attempt("12", "training on from a checkpoint with one flipped weight", "other weights", refused="damaged")(
    lambda place: _resume(place, lambda step: flip(next(step.glob("*.safetensors"))))
)


def _add(name: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text('{"<new>": 0}')

    return change


def _touchless(folder: Path) -> None:
    """Damage that keeps size and time of change, after a first opening."""
    import os
    import time

    from ctxsim_hf import OriginSimilarity

    path = folder / "signals/words"
    path = sorted(file for file in path.iterdir() if file.suffix == ".npy")[0]
    time.sleep(2.5)
    OriginSimilarity.from_pretrained(folder)
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(-4, 2)
        file.write(b"\1\2\3\4")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


FOREIGN = "was not written by the command that made .*, and might be loaded as a part of it; move it away"
for what, change, refusal in (
    ("an added `tokenizer/added_tokens.json`", _add("tokenizer/added_tokens.json"), FOREIGN),
    ("an unlisted folder `context_models/generator2`", _add("context_models/generator2/config.json"), FOREIGN),
    ("damage that keeps size and time of change, after a first opening", _touchless, CHANGED),
    ("width 0 in `layout.json`", _rewrite("layout.json", width=0), "layout.json' is damaged"),
):
    attempt("13", f"`similarity --origin` with {what}", "other numbers", refused=refusal)(
        lambda place, change=change: _similarity(place, change, "origin")  # type: ignore[misc]
    )


@attempt("13", "`similarity --cache` with the entries of two sentences swapped", "believed", answer="the same: ")
def _swapped(place: Place) -> str:
    cache = place.copy("cache")
    first, second = (place.root / "lines.txt").read_text().splitlines()[:2]
    words = ("similarity", "--origin", place.root / "origin", *SETTINGS, "--cache", cache, first, second)
    before = place.run(*words)
    one, two, *_ = sorted(path for path in cache.rglob("*") if path.is_file())
    shutil.copy(one, place.here / "kept")
    shutil.copy(two, one)
    shutil.copy(place.here / "kept", two)
    after = place.run(*words)
    return f"the same: {after}" if before == after else f"was {before}, is {after}"


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
