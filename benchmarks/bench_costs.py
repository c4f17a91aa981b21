"""Measure the constants of `ctxsim plan`, or compare its estimates with real runs.

    python -m benchmarks.bench_costs [--corpus FILE ...] [--words 20000 200000 2000000] [--context-model LM]
        [--output FILE]
    python -m benchmarks.bench_costs [--corpus FILE ...] --check 40000 400000 4000000

All stages run on the first words of a corpus, of several sizes, in one process with one thread; chunking also runs on
the same words in many short documents, which shows what a document costs. The constants of a part are those of the
line whose relative errors are least, so that small runs count as much as large ones. Time is that of the CPU, so a
busy machine does not matter. The context model is hardly trained, which does not change its speed. A language model
is not run through the stages: it is opened and reads some sentences, which is nearly all that it adds to an index and
a harvest. Without --corpus, the corpus is the documentation on this machine.
"""

import argparse
import contextlib
import gzip
import json
import os
import platform
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch
from scipy.optimize import nnls

import ctxsim_hf
from benchmarks.demo_data import write_demo_corpus
from benchmarks.measuring import anonymous_memory
from ctxsim_hf.harvest.drawing import NEAR_CHUNKS
from ctxsim_hf.harvest.harvest_arguments import MIXES
from ctxsim_hf.origin.index_arguments import IndexArguments
from ctxsim_hf.recipes.cost_model import SHIPPED, CostModel, Workload
from ctxsim_hf.runtime.blocks import Blocks, LocalExecutor
from ctxsim_hf.runtime.fetch import fetch_model

PAIRS = 20_000
PRESET = "light"
SEARCHES = 500
SHORT = 60  # words of a short document
READ = 200  # sentences that a language model reads
# Stage -> its parts that run in blocks, which all cores share, and what is left, which one core does.
PARTS = {
    "chunk": ({"ChunkBlocks": "chunk: split sentences"}, "chunk: find duplicates"),
    "index": ({"TokenBlocks": "index: tokenise", "ContextArrays": "index: context models"}, "index: TF-IDF, tables"),
    "harvest": ({"HarvestBlocks": "harvest: label"}, "harvest: draw"),
}
OF_MODEL = ("index: context models", "harvest: draw", "harvest: label")
Measured = dict[str, dict[str, float]]  # part -> seconds, memory, disk


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, nargs="+", help=".jsonl or .jsonl.gz files with a column text")
    parser.add_argument("--words", type=int, nargs="+", default=[20_000, 200_000, 2_000_000], help="sizes to measure")
    parser.add_argument("--context-model", help="a causal language model to measure too")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results/costs.json")
    parser.add_argument("--check", type=int, nargs="+", help="sizes to compare with the estimates instead")
    parser.add_argument("--constants", type=Path, default=SHIPPED, help="file to check")
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(args.corpus, Path(scratch))
        if args.check:
            check(bench, args.check, CostModel.load(args.constants))
        else:
            args.output.parent.mkdir(exist_ok=True)
            found = constants(bench, sorted(args.words), args.context_model)
            args.output.write_text(json.dumps(found, indent=2) + "\n", "utf-8")
            print(f"{args.output} is written")


class Timed:
    """An executor that runs blocks in this process and remembers what they took, and what is left of a stage."""

    def __init__(self) -> None:
        self.parts: dict[str, dict[str, float]] = {}
        self._watch = MemoryWatch()

    def __call__(self, work: Blocks, names: Sequence[str]) -> None:
        with self.measuring(type(work).__name__):
            LocalExecutor()(work, names)

    @contextlib.contextmanager
    def measuring(self, name: str) -> Iterator[None]:
        """Measure a block of code; what is measured within it is subtracted."""
        before = sum(part["seconds"] for part in self.parts.values())
        start = time.process_time()
        with self._watch.looking_for(name):
            yield
        inner = sum(part["seconds"] for part in self.parts.values()) - before
        seconds = time.process_time() - start - inner
        self.parts[name] = {"seconds": seconds, "memory": self._watch.grown[name]}


class MemoryWatch:
    """Looks often at the memory of this process. Pages of mapped files, which can be dropped, do not count."""

    def __init__(self) -> None:
        self.grown: dict[str, float] = {}  # bytes more than at the start
        self._names: list[str] = []
        self._start = anonymous_memory()

    @contextlib.contextmanager
    def looking_for(self, name: str) -> Iterator[None]:
        """Note the peak under a name while a block runs, except where another name is looked for within it."""
        self.grown[name] = 0.0
        before = anonymous_memory()
        self._names.append(name)
        ended = threading.Event()
        thread = threading.Thread(target=self._look, args=(ended,))
        if len(self._names) == 1:
            thread.start()
        try:
            yield
        finally:
            ended.set()
            if len(self._names) == 1:
                thread.join()
            self._names.pop()
            self._start += max(0.0, anonymous_memory() - before)  # what is freed but not returned to the system

    def _look(self, ended: threading.Event) -> None:
        while not ended.wait(0.05):
            name = self._names[-1]
            self.grown[name] = max(self.grown[name], anonymous_memory() - self._start)


class Bench:
    """Runs the stages on corpora of any size, with one generator for all."""

    def __init__(self, corpus: Sequence[Path] | None, scratch: Path) -> None:
        self.scratch = scratch
        self.chunks: dict[int, int] = {}  # for each number of words
        self.documents: dict[int, int] = {}
        if corpus is None:
            write_demo_corpus(scratch / "documentation.jsonl")
        self.corpus = corpus or [scratch / "documentation.jsonl"]
        self.memory_at_start = anonymous_memory()
        ctxsim_hf.chunk(self.cut(100_000), output=scratch / "first", held_out=0.2)
        tokenizer, generator = scratch / "tokenizer", scratch / "generator"
        ctxsim_hf.train_tokenizer(scratch / "first", output=tokenizer, vocab_size=8000, lowercase=True)
        sizes: dict[str, Any] = {"tokenizer": tokenizer, "preset": PRESET, "max_steps": 2}
        ctxsim_hf.train_context_model("light", chunks=scratch / "first", output=generator, **sizes)

    def cut(self, words: int, length: int | None = None) -> Path:
        """Write the first so many words of the corpus, again and again if it is too short, in documents of a length.

        Every text gets a mark, so that no copy is a duplicate and no tokens of an earlier run are in the cache.
        """
        left, times, run = words, 0, time.time_ns()
        path = self.scratch / (f"{words}.jsonl" if length is None else f"{words}-{length}.jsonl")
        with path.open("w", encoding="utf-8") as file:
            while left > 0:
                for number, text in enumerate(self._texts(length)):
                    row = {"id": f"{times}-{number}", "text": f"{text} This is copy {times} of run {run}."}
                    file.write(json.dumps(row) + "\n")
                    left -= len(text.split())
                    if left <= 0:
                        break
                times += 1
        return path

    def _texts(self, length: int | None) -> Iterator[str]:
        for path in self.corpus:
            opener: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
            with opener(path, "rt", encoding="utf-8") as file:
                for line in file:
                    text = json.loads(line)["text"]
                    if length is None:
                        yield text
                    else:
                        words = text.split()
                        yield from (" ".join(words[start : start + length]) for start in range(0, len(words), length))

    def run(self, words: int, pairs: int = PAIRS) -> Measured:
        """Run all stages on so many words; return what each part took."""
        corpus, place = self.cut(words), self.scratch / str(words)
        stages: dict[str, Callable[[Any], Any]] = {
            "chunk": lambda by: ctxsim_hf.chunk(corpus, output=place / "chunk", executor=by),
            "index": lambda by: ctxsim_hf.build_index(
                place / "chunk", output=place / "index", generator=self.scratch / "generator", executor=by
            ),
            "harvest": lambda by: ctxsim_hf.harvest(
                place / "index", pairs=pairs, output=place / "harvest", mode="group", at_most=True, executor=by
            ),
        }
        measured: Measured = {}
        for stage, run in stages.items():
            parts, counts = self._measure(stage, run)
            files = [path for path in (place / stage).rglob("*") if path.is_file()]
            parts[PARTS[stage][1]]["disk"] = float(sum(path.stat().st_size for path in files))
            measured |= parts
            if stage == "chunk":
                self.documents[words] = counts["documents_read"]
            if stage == "index":
                self.chunks[words] = counts["chunks"]
            if stage == "harvest":
                pairs_made = sum(counts["pairs"].values())
                measured["pairs"] = {
                    "number": float(pairs_made),
                    "sentences": sum(counts["sentences"].values()) / pairs_made,
                    "search": seconds_of_search(place),
                }
        print(f"{words:,} words, {self.chunks[words]:,} chunks: {json.dumps(measured)}", flush=True)
        return measured

    def short_documents(self, words: int) -> tuple[int, float]:
        """Return the number of short documents with so many words, and the seconds of finding duplicates in them."""
        corpus = self.cut(words, SHORT)
        parts, counts = self._measure(
            "chunk", lambda by: ctxsim_hf.chunk(corpus, output=self.scratch / "short", executor=by)
        )
        return counts["documents_read"], parts[PARTS["chunk"][1]]["seconds"]

    def _measure(self, stage: str, run: Callable[[Any], Any]) -> tuple[Measured, dict[str, Any]]:
        """Return what each part of a stage took, and what the stage returned."""
        timed, (names, rest) = Timed(), PARTS[stage]
        with timed.measuring(rest):
            counts = run(timed)
        for part in timed.parts.values():
            part |= {"memory": part["memory"] + self.memory_at_start, "disk": 0.0}
        return {names.get(name, name): part for name, part in timed.parts.items()}, counts


def seconds_of_search(place: Path) -> float:
    """Return the time of one search by TF-IDF. Small corpora hide in a harvest how it grows with the chunks."""
    index = ctxsim_hf.OriginSimilarity.from_pretrained(place / "index").index.tfidf
    sentences = [chunk[0] for chunk in ctxsim_hf.read_chunks(place / "chunk")["sentences"][:SEARCHES]]
    times = []
    for _ in range(3):
        start = time.process_time()
        for _ in index.search(sentences, NEAR_CHUNKS):
            pass
        times.append((time.process_time() - start) / len(sentences))
    return min(times)


def constants(bench: Bench, sizes: Sequence[int], language_model: str | None) -> dict[str, Any]:
    """Return the content of the file, from runs of several sizes."""
    runs = [bench.run(words) for words in sizes]
    chunks = [bench.chunks[words] for words in sizes]
    alone = [rest for _, rest in PARTS.values()]
    names = [part for blocks, rest in PARTS.values() for part in (rest, *blocks.values())]
    rates = {name: _rates(name, runs, sizes, chunks) | {"parallel": name not in alone} for name in names}
    documents = [bench.documents[words] for words in sizes]
    finding = PARTS["chunk"][1]
    short, seconds = bench.short_documents(sizes[-1])
    found = _fit([*(run[finding]["seconds"] for run in runs), seconds], [*sizes, sizes[-1]], [*documents, short])
    rates[finding]["seconds"] = dict(zip(("start", "words", "documents"), found, strict=True))
    models: dict[str, Any] = {"light": {"preset": PRESET, "parts": {name: rates[name] for name in OF_MODEL}}}
    if language_model is not None:
        sentences_per_pair = runs[-1]["pairs"]["sentences"]
        parts = parts_of_language_model(bench, language_model, rates["harvest: draw"], sentences_per_pair)
        models["causal"] = {"parts": parts}
    return {
        "machine": f"{platform.machine()}, one core at a time, {', '.join(f'{size:,}' for size in sizes)} words",
        "words_per_chunk": sizes[-1] / (chunks[-1] - documents[-1] / 2),
        "parts": {name: rates[name] for name in names if name not in OF_MODEL},
        "context_models": models,
    }


def parts_of_language_model(
    bench: Bench, name: str, draw: dict[str, Any], sentences_per_pair: float
) -> dict[str, dict[str, Any]]:
    """Return what a language model adds. Each process opens it, and it reads the background of an index and each
    sentence of a harvest once; so time and memory grow with its parameters."""
    timed = Timed()
    # Imported here, since its 90 MB would count as memory of every part.
    from ctxsim_hf.context_models.causal.scoring import CausalContextModel
    from ctxsim_hf.recipes.reading_speed import EXPECTED, MAX_LETTERS

    with timed.measuring("open"):
        model = CausalContextModel.load(fetch_model(name, EXPECTED, CausalContextModel.files), "cpu")
    rows = ctxsim_hf.read_chunks(bench.scratch / "first")["sentences"]
    sentences = [text for row in rows for text in row if len(text) <= MAX_LETTERS][:READ]
    with timed.measuring("read"):
        model.vectors(sentences)
    parameters = model.model.num_parameters()
    a_sentence = timed.parts["read"]["seconds"] / len(sentences) / parameters
    grown = max(part["memory"] for part in timed.parts.values())
    start = {"start": timed.parts["open"]["seconds"]}
    memory = {"memory": {"start": bench.memory_at_start, "parameters": grown / parameters}}
    background = {"seconds": start | {"parameters": IndexArguments.background * a_sentence}, "disk": {}}
    label = {"seconds": start | {"pairs * parameters": sentences_per_pair * a_sentence}, "disk": {}}
    return {
        "index: background": background | memory | {"parallel": False},
        "harvest: draw": draw | memory | {"seconds": start | draw["seconds"]},
        "harvest: label": label | memory | {"parallel": True},
    }


def _rates(name: str, runs: Sequence[Measured], sizes: Sequence[int], chunks: Sequence[int]) -> dict[str, Any]:
    """Return seconds, memory and disk of a part, as rates of the quantities that they grow with."""
    rates = {
        kind: dict(zip(("start", "words"), _fit([run[name][kind] for run in runs], sizes), strict=True))
        for kind in ("seconds", "memory", "disk")
    }
    if any(name in blocks.values() for blocks, _ in PARTS.values()):
        rates["memory"] = {"start": max(run[name]["memory"] for run in runs)}  # blocks are of one size
    if name.startswith("harvest"):
        pairs = [run["pairs"]["number"] for run in runs]
        seconds = [run[name]["seconds"] / number for run, number in zip(runs, pairs, strict=True)]
        # Labelling looks for the contexts of every sentence, drawing for the neighbours of one in a group.
        mix = MIXES["group"]
        group = 1 if name.endswith("label") else mix["near"] + mix["document"] + mix["unrelated"]
        _, a_chunk = _fit([run["pairs"]["search"] for run in runs], chunks)
        growing = a_chunk * runs[-1]["pairs"]["sentences"] / group
        fixed = max(0.0, sum(seconds) / len(seconds) - growing * sum(chunks) / len(chunks))
        rates["seconds"] = {"pairs": fixed, "pairs * chunks": growing}
        rates["disk"] = {"pairs": runs[-1][name]["disk"] / pairs[-1]}
    return rates


def _fit(values: Sequence[float], *quantities: Sequence[float]) -> list[float]:
    """Return start and rates of the quantities with the least squares of relative errors; none is below 0."""
    if not any(values):
        return [0.0] * (1 + len(quantities))
    columns = np.array([np.ones(len(values)), *quantities]) / np.array(values)
    rates, _ = nnls(columns.T, np.ones(len(values)))
    return [float(rate) for rate in rates]


def check(bench: Bench, sizes: Sequence[int], model: CostModel) -> None:
    """Print what every stage took beside its estimate."""
    print("| words | stage | seconds | estimated | ratio | memory, MB | estimated | disk, MB | estimated |")
    print("|--:|---|--:|--:|--:|--:|--:|--:|--:|")
    for words in sizes:
        run = bench.run(words)
        workload = Workload(words=words, documents=bench.documents[words], pairs=int(run["pairs"]["number"]))
        costs = model.estimate(workload, "light", PRESET)
        for stage in PARTS:
            real = [part for name, part in run.items() if name.startswith(f"{stage}:")]
            guessed = [cost for cost in costs if cost.part.startswith(f"{stage}:")]
            took, estimated = sum(p["seconds"] for p in real), sum(c.seconds for c in guessed)
            columns = [f"{words:,}", stage, f"{took:.1f}", f"{estimated:.1f}", f"{estimated / took:.2f}"]
            columns += [f"{max(p['memory'] for p in real) / 1e6:.0f}", f"{max(c.memory for c in guessed) / 1e6:.0f}"]
            columns += [f"{sum(p['disk'] for p in real) / 1e6:.1f}", f"{sum(c.disk for c in guessed) / 1e6:.1f}"]
            print(f"| {' | '.join(columns)} |", flush=True)


if __name__ == "__main__":
    main()
