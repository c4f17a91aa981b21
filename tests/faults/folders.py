"""Make a tiny folder of every kind by the commands, once."""

import json
import shutil
import time
from pathlib import Path

from planted import PlantedCorpus
from tiny_language_model import save_tiny_llama

from faults.children import Child, command, run, run_command
from faults.command_lines import EVERY_SIGNAL, SETTINGS, commands

MADE = (  # the way of making it, and the folder
    ("chunk", "chunks"),
    ("train-tokenizer", "tokenizer"),
    ("train discriminator", "discriminator"),
    ("train generator", "generator"),
    ("index", "origin"),
    ("harvest", "pairs"),
    ("train surrogate", "surrogate"),
    ("export", "onnx"),
    ("search", "search"),
    ("train context-model", "context-model"),
    ("index --cloze-only", "grown"),
    ("index --add", "grown"),
)
THEN = (
    ("weigh", "grown"),
    ("harvest-vectors", "vectors"),
    ("train surrogate --kind static", "static"),
    ("search --add documents", "documents"),
    ("adapt", "by-adapt"),
)
FEW = 2  # of these take a second
FEW_KINDS, FEW_VERBS = ["chunks", "tokenizer"], ["chunk", "sample", "train-tokenizer"]


def make_folders(root: Path, few: bool = False) -> None:
    """Make everything that the command lines read, and the folders that are damaged; or a few of them."""
    lines = _write_texts(root)
    if not few:
        run(lambda: str(save_tiny_llama(root / "language-model", text=lines)))
    made = commands(root)
    for number, (verb, name) in enumerate(MADE):
        if few and number == FEW:
            return
        run_command(*made[verb](root / name))
    run_command("index", "--origin", root / "grown", "--delete", "texts/5", "texts/6", "more/m5")
    for verb, name in THEN:
        run_command(*made[verb](root / name))
    run_command("search", "--index", root / "documents", "--add", root / "more.jsonl")
    run_command("search", "--index", root / "documents", "--delete", 5, "m5")
    free = ("--label-free", "--chunks", root / "chunks", "--limit", 20, "--save-thresholds")
    run_command("evaluate", f"surrogate:{root / 'surrogate'}", *free, "--output", root / "surrogate")
    for name in ("origin", "grown"):
        words = ("similarity", *lines[:2], "--origin", root / name, *SETTINGS, "--cache", root / "cache")
        run_command(*words, *(EVERY_SIGNAL if name == "grown" else ()))
    _interrupt_training(root)
    _lay_out_as_adapted(root)


def _write_texts(root: Path) -> list[str]:
    """Write documents and others to add, a sentence of each of them in lines, and pairs of lines; return the lines."""
    PlantedCorpus().write(root / "texts.jsonl", 96)
    PlantedCorpus(1).write(root / "more.jsonl", 24)
    more = [json.loads(line) for line in (root / "more.jsonl").open()]
    (root / "more.jsonl").write_text("".join(json.dumps(row | {"id": f"m{row['id']}"}) + "\n" for row in more))
    (root / "later.jsonl").write_text(json.dumps({"id": "later", "text": "One more sentence."}) + "\n")
    PlantedCorpus(2).write(root / "later-long.jsonl", 8)
    (root / "more.txt").write_text("".join(row["text"].split("\n\n")[1] + "\n" for row in more))
    lines = [json.loads(line)["text"].split("\n\n")[1] for line in (root / "texts.jsonl").open()]
    (root / "lines.txt").write_text("\n".join(lines) + "\n")
    (root / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in zip(lines[::2], lines[1::2], strict=True)))
    return lines


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
