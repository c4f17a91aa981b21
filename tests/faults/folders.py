"""Make a tiny folder of every kind by the commands, once, and the command lines that every verb is tried with."""

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from planted import PlantedCorpus
from tiny_language_model import save_tiny_llama

from faults.children import Child, command, run, run_command

SETTINGS = ("--num-contexts", 4, "--background-size", 12, "--screen-chunks", 20)
PAIRS = ("--pairs", 300, "--near", 5, "--document", 4, "--unrelated", 1, "--pairs-per-file", 150)
STEPS = ("--max-steps", 6, "--log-every", 1, "--checkpoint-every", 2, "--eval-every", 1000)
# Verbs that write nothing, and why they are not killed.
WITHOUT_OUTPUT = {
    "app": "serves a page; its index is made as that of search",
    "contexts": "prints",
    "plan": "prints",
    "publish": "writes on the Hub only, after a check of every byte",
}
ENDINGS = {"cluster": ".jsonl", "duplicates": ".tsv", "label": ".tsv"}  # of the names of files that a verb writes
TIMED = ("adapt",)  # trains for some time, so no two runs are equal

MADE = (  # verb and folder
    ("chunk", "chunks"),
    ("train-tokenizer", "tokenizer"),
    ("train discriminator", "discriminator"),
    ("train generator", "generator"),
    ("index", "origin"),
    ("harvest", "pairs"),
    ("train surrogate", "surrogate"),
    ("export", "onnx"),
    ("search", "search"),
    ("harvest-vectors", "vectors"),
    ("train context-model", "context-model"),
)
FEW = 2  # of these take a second
FEW_KINDS, FEW_VERBS = ["chunks", "tokenizer"], ["chunk", "sample", "train-tokenizer"]

Words = tuple[object, ...]


def commands(root: Path) -> dict[str, Callable[[Path], Words]]:
    """Return for each verb a function from its output to its command line; all read what `make_folders` made."""
    chunks, tokenizer, surrogate = root / "chunks", root / "tokenizer", root / "surrogate"
    learned = ("--chunks", chunks, "--tokenizer", tokenizer, "--preset", "tiny", *STEPS)
    models = ("--discriminator", root / "discriminator", "--generator", root / "generator")
    lines = root / "lines.txt"
    corpus = ("--corpus", root / "texts.jsonl")
    free = ("--label-free", "--chunks", chunks, "--limit", 20)
    mined = ("--surrogate", surrogate, "--input", lines, "--percentile", 90)
    tasks = ("--adapted", root / "adapted", "--data-root", root / "data", "--limit", 6)
    return {
        "adapt": lambda out: (
            *("adapt", *corpus, "--preset", "tiny", "--held-out", 0.1, "--minutes", 0.02, "--workers", 1),
            *("--output", out),
        ),
        "chunk": lambda out: ("chunk", *corpus, "--held-out", 0.1, "--shard-chars", 9000, "--output", out),
        "sample": lambda out: ("sample", "--chunks", chunks, "--share", 0.5, "--output", out),
        "train-tokenizer": lambda out: ("train-tokenizer", "--chunks", chunks, "--vocab-size", 700, "--output", out),
        "train discriminator": lambda out: ("train", "discriminator", *learned, "--output", out),
        "train generator": lambda out: ("train", "generator", *learned, "--output", out),
        "train context-model": lambda out: (
            *("train", "context-model", "--init", root / "language-model", "--chunks", chunks, *STEPS),
            *("--tokens-per-batch", 500, "--eval-contexts", 20, "--output", out),
        ),
        "train surrogate": lambda out: (
            *("train", "surrogate", "--pairs", root / "pairs", "--tokenizer", tokenizer, "--preset", "tiny"),
            *(*STEPS, "--output", out),
        ),
        "index": lambda out: ("index", "--chunks", chunks, *models, "--background", 50, "--output", out),
        "similarity": lambda out: (
            *("similarity", "--surrogate", surrogate, "--pairs", root / "pairs.tsv", "--output", out),
        ),
        "harvest": lambda out: ("harvest", "--origin", root / "origin", *SETTINGS, *PAIRS, "--output", out),
        "harvest-vectors": lambda out: (
            *("harvest-vectors", "--origin", root / "origin", "--signals", "words=1", "--sentences", 100),
            *("--sentences-per-file", 20, "--output", out),
        ),
        "encode": lambda out: ("encode", "--surrogate", surrogate, "--input", lines, "--output", out),
        "search": lambda out: ("search", "--surrogate", surrogate, "--add", lines, "--index", out),
        "duplicates": lambda out: ("duplicates", *mined, "--max-pairs", 40, "--output", out),
        "cluster": lambda out: ("cluster", *mined, "--output", out),
        "label": lambda out: (
            *("label", "--origin", root / "origin", "--surrogate", surrogate, "--candidates", 60, "--number", 10),
            *("--output", out),
        ),
        "export": lambda out: ("export", "--surrogate", surrogate, "--output", out),
        "evaluate": lambda out: ("evaluate", f"surrogate:{surrogate}", *free, "--output", out),
        "ablate": lambda out: ("ablate", "strategy", *tasks, *SETTINGS, "--output", out),
        "card": lambda out: ("card", out),
        "weigh": lambda out: ("weigh", "--origin", out, "--chunks", chunks, "--pairs", 30),
    }


def make_folders(root: Path, few: bool = False) -> None:
    """Make everything that the command lines read, and the folders that are damaged; or a few of them."""
    PlantedCorpus().write(root / "texts.jsonl", 96)
    lines = [json.loads(line)["text"].split("\n\n")[1] for line in (root / "texts.jsonl").open()]
    (root / "lines.txt").write_text("\n".join(lines) + "\n")
    (root / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in zip(lines[::2], lines[1::2], strict=True)))
    if not few:
        run(lambda: str(save_tiny_llama(root / "language-model", text=lines)))
    made = commands(root)
    for number, (verb, name) in enumerate(MADE):
        if few and number == FEW:
            return
        run_command(*made[verb](root / name))
    free = ("--label-free", "--chunks", root / "chunks", "--limit", 20, "--save-thresholds")
    run_command("evaluate", f"surrogate:{root / 'surrogate'}", *free, "--output", root / "surrogate")
    run_command("similarity", "--origin", root / "origin", *SETTINGS, "--cache", root / "cache", *lines[:2])
    _interrupt_training(root)
    _lay_out_as_adapted(root)


def _interrupt_training(root: Path) -> None:
    """Leave a training as a kill leaves it, with at least one checkpoint."""
    child = Child(command(commands(root)["train discriminator"](root / "resumed")))
    while not list(root.glob("resumed.ctxsim-partial/output/checkpoints/step-*[0-9]")):
        time.sleep(0.01)
    child.kill()
    if child.wait().how != "killed":
        raise RuntimeError("the training ended before it was killed")


def _lay_out_as_adapted(root: Path) -> None:
    """Make what `ctxsim ablate` reads: an adapted folder, and a public dataset with made-up labels."""
    for name in ("chunks", "tokenizer", "generator", "pairs"):
        shutil.copytree(root / name, root / "adapted" / name)
    shutil.copytree(root / "origin", root / "adapted/ctxsim/origin-tiny")
    rows = [
        dict(zip(("sentence1", "sentence2", "score"), (*line.split("\t"), number % 5), strict=True))
        for number, line in enumerate((root / "pairs.tsv").read_text().splitlines())
    ]
    folder = root / "data/mteb/stsbenchmark-sts"
    folder.mkdir(parents=True)
    (folder / "validation.jsonl").write_text("\n".join(map(json.dumps, rows)))
