"""Similarity and training beside a busy core, with OMP_WAIT_POLICY=PASSIVE and without; what checks cost on opening.

    python -m benchmarks.bench_busy [--origin DIR --chunks DIR --tokenizer DIR --surrogate DIR]
                                    [--pairs 200] [--seconds 60] [--rounds 2]

By default models of the demo corpus that were hardly trained. Every figure is taken in a process of its own, as a
program in Python that imports the package, without any OMP_ variable but the one that is compared; the two ways take
turns. The busy core is a loop in pure Python.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.demo_data import add_flags, chunks_and_tokenizer
from benchmarks.report import report

MOST = 1.3  # times as long without the variable
MOST_MILLISECONDS = 20  # more for opening something that is checked
OPENINGS = 9
WAYS: dict[str, dict[str, str]] = {"with the variable": {"OMP_WAIT_POLICY": "PASSIVE"}, "without": {}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_flags(parser)
    parser.add_argument("--origin", help="folder made by ctxsim index")
    parser.add_argument("--surrogate", help="folder made by ctxsim train surrogate")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60, help="of training")
    parser.add_argument("--rounds", type=int, default=2, help="how often the two ways take turns")
    parser.add_argument("--measure", help=argparse.SUPPRESS)  # what a process that this one starts measures
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(MEASURES[args.measure](args)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        prepare(args, Path(scratch))
        with busy_core():
            seconds, steps = in_turn(args, "similarity"), in_turn(args, "training")
        opening = run(args, "opening", {})
    report_all(args, seconds, steps, opening)


def prepare(args: argparse.Namespace, scratch: Path) -> None:
    """Make what was not named."""
    import ctxsim_hf

    args.chunks, args.tokenizer = chunks_and_tokenizer(args, scratch)
    few = {"chunks": args.chunks, "tokenizer": args.tokenizer, "max_steps": 2}
    if not args.origin:
        ctxsim_hf.train_context_model("light", **few, output=scratch / "light")
        ctxsim_hf.build_index(args.chunks, generator=scratch / "light", output=scratch / "origin")
        args.origin = str(scratch / "origin")
    if not args.surrogate:
        ctxsim_hf.harvest(args.origin, pairs=500, mode="group", output=scratch / "pairs")
        surrogate = {"tokenizer": args.tokenizer, "preset": "light", "max_steps": 2, "output": scratch / "surrogate"}
        ctxsim_hf.train_surrogate(scratch / "pairs", **surrogate)
        args.surrogate = str(scratch / "surrogate")


@contextmanager
def busy_core() -> Iterator[None]:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            yield
        finally:
            process.kill()


def in_turn(args: argparse.Namespace, measure: str) -> dict[str, float]:
    """Return the sum of a figure over all rounds, for each way."""
    found = dict.fromkeys(WAYS, 0.0)
    for _ in range(args.rounds):
        for way, environment in WAYS.items():
            found[way] += run(args, measure, environment)
    return found


def run(args: argparse.Namespace, measure: str, environment: dict[str, str]) -> Any:
    """Measure in a process of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")}
    given = {name: value for name, value in vars(args).items() if name != "measure" and value is not None}
    flags = [word for name, value in given.items() for word in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "benchmarks.bench_busy", *flags, "--measure", measure]
    done = subprocess.run(command, env=kept | environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure_similarity(args: argparse.Namespace) -> float:
    """Return the seconds of similarities of pairs of background sentences, by every signal."""
    from ctxsim_hf import OriginSimilarity

    origin = OriginSimilarity.from_pretrained(args.origin, signals={"contexts": 1.0, "cloze": 1.0, "words": 1.0})
    sentences = (origin.background * (2 * args.pairs // len(origin.background) + 1))[: 2 * args.pairs]
    # Told apart by a word, so that none is remembered.
    sentences = [f"{sentence} {number}" for number, sentence in enumerate(sentences)]
    origin.similarity(sentences[:1], sentences[:1])  # whatever is done once
    start = time.perf_counter()
    origin.similarity(sentences[: args.pairs], sentences[args.pairs :])
    return time.perf_counter() - start


def measure_training(args: argparse.Namespace) -> int:
    """Return the steps of a light generator in so many seconds."""
    import ctxsim_hf

    with tempfile.TemporaryDirectory() as scratch:
        data = {"chunks": args.chunks, "tokenizer": args.tokenizer, "output": Path(scratch) / "light"}
        limits = {"max_train_minutes": args.seconds / 60, "epochs": 10_000}
        counts: dict[str, Any] = ctxsim_hf.train_context_model("light", **data, **limits)
    return int(counts["steps"])


def measure_opening(args: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Return the milliseconds of opening an origin and a surrogate again, and of the checks in it."""
    from ctxsim_hf import OriginSimilarity, SentenceEncoder

    return {
        "origin": openings(lambda: OriginSimilarity.from_pretrained(args.origin)),
        "surrogate": openings(lambda: SentenceEncoder.from_pretrained(args.surrogate)),
    }


def openings(open_again: Callable[[], object]) -> dict[str, float]:
    """Return the median of some openings and of what checks take of each, as in a new process, after a first one that
    computes digests. The checks are timed by themselves: they are less than an opening differs from the next."""
    from ctxsim_hf.runtime import checks, record

    found: dict[str, list[float]] = {"opening": [], "checks": []}
    originals = record.check_files, record.refuse_loadable_files

    def timed(check: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            start = time.perf_counter()
            check(*arguments)
            found["checks"][-1] += time.perf_counter() - start

        return call

    open_again()
    record.check_files, record.refuse_loadable_files = map(timed, originals)
    for _ in range(OPENINGS):
        checks._passed.clear()  # what this process remembers
        found["checks"].append(0)
        start = time.perf_counter()
        open_again()
        found["opening"].append(time.perf_counter() - start)
    record.check_files, record.refuse_loadable_files = originals
    return {name: 1000 * statistics.median(seconds) for name, seconds in found.items()}


MEASURES: dict[str, Callable[[argparse.Namespace], Any]] = {
    "similarity": measure_similarity,
    "training": measure_training,
    "opening": measure_opening,
}


def report_all(
    args: argparse.Namespace, seconds: dict[str, float], steps: dict[str, float], opening: dict[str, dict[str, float]]
) -> None:
    rows: list[dict[str, Any]] = [
        {
            "measure": f"similarity of {args.pairs} pairs beside a busy core: time without the variable over with it",
            "ratio": seconds["without"] / seconds["with the variable"],
            "wanted": f"<= {MOST}",
        },
        {
            "measure": f"{args.seconds:g} s of training beside a busy core: steps with the variable over without it",
            "ratio": steps["with the variable"] / steps["without"],
            "wanted": f"<= {MOST}",
        },
    ]
    for name, found in opening.items():
        rows.append(
            {
                "measure": f"opening a checked {name} again: milliseconds of checks",
                "ratio": found["checks"],
                "wanted": f"<= {MOST_MILLISECONDS}",
            }
        )
    details = {"rounds": args.rounds, "seconds of similarity": seconds, "steps of training": steps, "opening": opening}
    report("busy", rows, details)
    for name, value in details.items():
        print(f"{name}: {value}")


if __name__ == "__main__":
    main()
