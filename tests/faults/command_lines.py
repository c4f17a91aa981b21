"""The command lines that every verb is tried with, in one way or several.

A way is named by its verb and what tells it from the others, such as `index --add`.
"""

from collections.abc import Callable
from pathlib import Path

SETTINGS = ("--num-contexts", 4, "--background-size", 12, "--screen-chunks", 20)
EVERY_SIGNAL = ("--signals", "contexts=1", "cloze=1", "words=1", "encoder=1")
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
# Those that change a folder, and which.
CHANGED = {
    "card": "surrogate",
    "index --add": "origin",
    "index --delete": "grown",
    "index --compact": "grown",
    "search --add more": "search",
    "search --delete documents": "documents",
    "search --compact documents": "documents",
    "weigh": "grown",
}
TIMED = ("adapt", "adapt --context-model", "adapt --start")  # train for some time, so no two runs are equal

Words = tuple[object, ...]


def commands(root: Path) -> dict[str, Callable[[Path], Words]]:
    """Return for each way a function from its output to its command line; all read what `make_folders` made."""
    chunks, tokenizer, surrogate = root / "chunks", root / "tokenizer", root / "surrogate"
    learned = ("--chunks", chunks, "--tokenizer", tokenizer, "--preset", "tiny", *STEPS)
    models = ("--discriminator", root / "discriminator", "--generator", root / "generator")
    lines = root / "lines.txt"
    corpus = ("--corpus", root / "texts.jsonl")
    adapted = (*corpus, "--preset", "tiny", "--held-out", 0.1, "--minutes", 0.02, "--workers", 1)
    language_model = ("--context-model", root / "language-model")
    vectors = ("--objective", "teacher", "--vectors", root / "vectors", "--tokenizer", tokenizer)
    free = ("--label-free", "--chunks", chunks, "--limit", 20)
    mined = ("--surrogate", surrogate, "--input", lines, "--percentile", 90)
    tasks = ("--adapted", root / "adapted", "--data-root", root / "data", "--limit", 6)
    return {
        "adapt": lambda out: ("adapt", *adapted, "--output", out),
        "adapt --context-model": lambda out: ("adapt", *adapted, *language_model, "--output", out),
        "adapt --start": lambda out: ("adapt", *adapted, "--start", surrogate, "--output", out),
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
        "train surrogate --objective teacher": lambda out: (
            *("train", "surrogate", *vectors, "--preset", "tiny", *STEPS, "--output", out),
        ),
        "train surrogate --kind static": lambda out: (
            *("train", "surrogate", *vectors, "--kind", "static", *STEPS, "--output", out),
        ),
        "index": lambda out: ("index", "--chunks", chunks, *models, "--background", 50, "--output", out),
        "index --cloze-only": lambda out: (
            *("index", "--chunks", chunks, "--generator", root / "generator", *language_model, "--cloze-only"),
            *("--encoder", surrogate, "--background", 50, "--output", out),
        ),
        "index --add": lambda out: ("index", "--origin", out, "--add", "--corpus", root / "more.jsonl"),
        "index --delete": lambda out: ("index", "--origin", out, "--delete", "texts/3", "texts/40", "more/m9"),
        "index --compact": lambda out: ("index", "--origin", out, "--compact"),
        "similarity": lambda out: (
            *("similarity", "--surrogate", surrogate, "--pairs", root / "pairs.tsv", "--output", out),
        ),
        "harvest": lambda out: ("harvest", "--origin", root / "origin", *SETTINGS, *PAIRS, "--output", out),
        "harvest-vectors": lambda out: (
            *("harvest-vectors", "--origin", root / "grown", "--signals", "cloze=1", "words=1"),
            *("--sentences", 100, "--sentences-per-file", 20, "--output", out),
        ),
        "encode": lambda out: ("encode", "--surrogate", surrogate, "--input", lines, "--output", out),
        "search": lambda out: ("search", "--surrogate", surrogate, "--add", lines, "--index", out),
        "search --add more": lambda out: ("search", "--index", out, "--add", root / "more.txt"),
        "search --add documents": lambda out: (
            *("search", "--surrogate", surrogate, "--add", root / "texts.jsonl", "--index", out),
        ),
        "search --delete documents": lambda out: ("search", "--index", out, "--delete", 7, "m9"),
        "search --compact documents": lambda out: ("search", "--index", out, "--compact"),
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
