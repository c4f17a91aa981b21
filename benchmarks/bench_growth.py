"""How an origin with a light generator grows: building, adding, asking and harvesting, from small to large.

    python -m benchmarks.bench_growth [--chunks DIR] [--sizes 10000 100000 1000000] [--plot docs/growth.svg]

Documents are made as in bench_index, by joining halves of a corpus's chunks (default: the demo corpus). At every size
an origin is built, 1 % of documents are added, sentences are compared and pairs are harvested. Seconds are those of
the CPU, in one process with one thread, so a busy machine does not matter. The exponent of a step is the slope of its
line in the plot, from one size to the next: 1 means that ten times the chunks take ten times as long.
"""

import argparse
import json
import os
import random
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from math import log
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import torch

import ctxsim_hf
from benchmarks.demo_data import Chunks, add_chunks_flag, draw_sentences, find_chunks, read_sentences, resampled
from benchmarks.measuring import timed
from benchmarks.report import report

STEPS = {
    "build": "build",
    "add": "add 1 % of documents",
    "ask": "compare 200 pairs of sentences",
    "harvest": "harvest 5,000 pairs",
}
QUESTIONS, PAIRS = 200, 5000

cpu_timed = partial(timed, clock=time.process_time)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_chunks_flag(parser)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000], help="documents")
    parser.add_argument("--plot", type=Path, help="picture to write, .svg or .png")
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        corpus = read_sentences(find_chunks(args.chunks, place))
        generator = make_generator(corpus, place)
        runs = [measure(corpus, size, generator, place / f"{size}") for size in sorted(args.sizes)]
    if args.plot:
        plot(runs, args.plot)
    rows = [
        {"measure": f"exponent of {STEPS[step]}, {first['chunks']:,} to {last['chunks']:,} chunks", "wanted": "<= 1.1"}
        | {"ratio": log(last[step] / first[step]) / log(last["chunks"] / first["chunks"])}
        for step in STEPS
        for first, last in pairwise(runs)
    ]
    rows += [
        {
            "measure": f"adding over building, {run['chunks']:,} chunks",
            "ratio": run["add"] / run["build"],
            "wanted": "",
        }
        for run in runs
    ]
    report("growth", rows, {"seconds": runs})


def make_generator(corpus: Chunks, place: Path) -> Path:
    """Train a light generator for two steps, which does not change its speed."""
    write_documents(place / "first.jsonl", corpus, 2000)
    chunks, tokenizer, generator = (place / name for name in ("first", "tokenizer", "generator"))
    ctxsim_hf.chunk(place / "first.jsonl", output=chunks, held_out=0.2)
    ctxsim_hf.train_tokenizer(chunks, output=tokenizer, vocab_size=8000, lowercase=True)
    sizes: dict[str, Any] = {"tokenizer": tokenizer, "preset": "light", "max_steps": 2}
    ctxsim_hf.train_context_model("light", chunks=chunks, output=generator, **sizes)
    return generator


def write_documents(path: Path, corpus: Chunks, size: int) -> None:
    """Write documents of a chunk each. They have a mark, so that no tokens of an earlier run are in the cache."""
    with path.open("w", encoding="utf-8") as file:
        for number, sentences in enumerate(resampled(corpus, size)):
            text = f"{' '.join(sentences)} This is number {number} of run {time.time_ns()}."
            file.write(json.dumps({"id": f"{path.stem}-{number}", "text": text}) + "\n")


def measure(corpus: Chunks, size: int, generator: Path, place: Path) -> dict[str, float]:
    """Return the number of chunks, and the CPU seconds of every step."""
    place.mkdir()
    for name, documents in (("many", size), ("more", size // 100)):
        write_documents(place / f"{name}.jsonl", corpus, documents)
        ctxsim_hf.chunk(place / f"{name}.jsonl", output=place / name, held_out=0)
    origin, run = place / "origin", {}
    counts, run["build"] = cpu_timed(lambda: ctxsim_hf.build_index(place / "many", generator=generator, output=origin))
    run["chunks"] = counts["chunks"]
    _, run["add"] = cpu_timed(lambda: ctxsim_hf.grow_index(origin, chunks=place / "more"))
    chooser = random.Random(size)
    ones, others = (draw_sentences(corpus, QUESTIONS, chooser) for _ in range(2))
    similarity = ctxsim_hf.OriginSimilarity.from_pretrained(origin)
    similarity.similarity(ones[:1], others[:1])  # opens everything
    _, run["ask"] = cpu_timed(lambda: similarity.similarity(ones, others))
    options: dict[str, Any] = {"pairs": PAIRS, "output": place / "pairs", "mode": "group", "at_most": True}
    _, run["harvest"] = cpu_timed(lambda: ctxsim_hf.harvest(origin, **options))
    shutil.rmtree(place)  # a large one leaves no room for the next
    print(json.dumps(run), flush=True)
    return run


def plot(runs: Sequence[Mapping[str, float]], path: Path) -> None:
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams["svg.hashsalt"] = "growth"  # equal runs leave equal bytes
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for step, label in STEPS.items():
        axes.loglog([run["chunks"] for run in runs], [run[step] for run in runs], "o-", label=label)
    axes.set_xlabel("chunks in the origin")
    axes.set_ylabel("CPU seconds, one thread")
    axes.grid(which="both", alpha=0.2)
    axes.legend()
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


if __name__ == "__main__":
    main()
