"""Folders, checkpoints and caches that were damaged, and gave another answer without a word."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from faults.attempts.attempt import Place, attempt, cut, flip
from faults.command_lines import SETTINGS, STEPS, commands

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
        lambda place, change=change: _similarity(place, change)
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


@attempt("10", "`origin.json` with a ridge of NaN", "0.0", refused="origin.json' is damaged")
def _ridge_in_json(place: Place) -> str:
    return _similarity(place, _rewrite("origin.json", ridge=float("nan")), "origin")


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

    path = min(folder.glob("versions/*/words/*.npy"))
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
        lambda place, change=change: _similarity(place, change, "origin")
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
