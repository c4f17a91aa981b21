"""Harvest: group mode against pair mode, pair mode against one call a pair, a second process, and memory.

python -m benchmarks.bench_harvest [--origin DIR]        (default: hardly trained models of the demo corpus)
"""

import argparse
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from scipy.stats import spearmanr

from benchmarks.bench_origin import demo_origin
from benchmarks.measuring import anonymous_memory
from benchmarks.report import report
from ctxsim_hf.harvest.drawing import Drawing, Mix, Pairs
from ctxsim_hf.harvest.harvest_arguments import MIXES
from ctxsim_hf.origin.similarity import OriginSimilarity

BIN = Path(sys.executable).parent
TWO_PROCESSES = Path(__file__).parents[1] / "accelerate_configs/two_cpu_processes.yaml"
ONE_THREAD = {"OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--origin", help="folder made by ctxsim index")
    parser.add_argument("--groups", type=int, default=5, help="groups of each measurement of a mode")
    parser.add_argument("--pairs", type=int, default=10_000, help="pairs of the largest harvest in pair mode")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(args.origin) if args.origin else demo_origin(Path(scratch))
        details: dict[str, Any] = {}
        rows = modes(folder, args.groups, details)
        rows += whole_runs(folder, Path(scratch), args.pairs, details)
    report("harvest", rows, details)
    for name, value in details.items():
        print(f"{name}: {value}")


def groups(origin: OriginSimilarity, mode: str, number: int) -> Iterator[tuple[list[str], Pairs]]:
    """Sentences and pairs of the groups that a harvest in this mode would draw first."""
    drawing = Drawing(origin.index, Mix(farthest=256, **MIXES[mode]), (5, 40), seed=0)  # type: ignore[arg-type]
    for group in islice(drawing.groups("train"), number):
        yield origin.index.texts(group.sentences), drawing.pairs(group)


def modes(folder: Path, number: int, details: dict[str, Any]) -> list[dict[str, Any]]:
    """Milliseconds a pair: group mode, pair mode, and one call of `compare` for each pair of the latter."""
    origin = OriginSimilarity.from_pretrained(folder)
    origin.contexts.sets.max_remembered = 1
    origin.label(*first_group(origin, "group"), "group")  # files are mapped, threads are there
    by_group, by_pair = (per_pair(origin, mode, number) for mode in ("group", "pair"))
    forgetful, mindful = (one_call_a_pair(folder, number, remember) for remember in (False, True))
    details["milliseconds a pair"] = {
        "group mode": by_group,
        "pair mode": by_pair,
        "one call a pair": forgetful,
        "one call a pair, with all that OriginSimilarity remembers between calls": mindful,
    }
    details["contexts that a sentence is scored in"] = 2 * origin.settings.num_contexts
    details["Spearman of the two modes' labels, on pairs of group mode"] = agreement(origin, number)
    return [
        {"measure": "group mode over pair mode, pairs/s", "ratio": by_pair / by_group, "wanted": ">= 30"},
        {"measure": "pair mode over one call a pair, pairs/s", "ratio": forgetful / by_pair, "wanted": ">= 5"},
    ]


def first_group(origin: OriginSimilarity, mode: str) -> tuple[list[str], np.ndarray]:
    ((sentences, pairs),) = groups(origin, mode, 1)
    return sentences, pairs.members


def per_pair(origin: OriginSimilarity, mode: str, number: int) -> float:
    drawn = list(groups(origin, mode, number))
    start = time.perf_counter()
    for sentences, pairs in drawn:
        origin.label(sentences, pairs.members, mode)
    return 1e3 * (time.perf_counter() - start) / sum(len(pairs.members) for _, pairs in drawn)


def one_call_a_pair(folder: Path, number: int, remember: bool) -> float:
    """Score and spread, in the order in which a harvest writes pairs; 100 of them stand for all."""
    origin = OriginSimilarity.from_pretrained(folder)
    rows = [
        (hashed, sentences[first], sentences[second])
        for sentences, pairs in groups(origin, "pair", number)
        for hashed, (first, second) in zip(pairs.hashes.tolist(), pairs.members, strict=True)
    ]
    rows = sorted(rows)[:100]
    start = time.perf_counter()
    for _, sentence1, sentence2 in rows:
        (pair,) = origin.compare([sentence1], [sentence2])
        _ = pair.similarity, pair.spread
        if not remember:
            origin.contexts._judged.clear()
            origin.contexts.sets._remembered.clear()
    return 1e3 * (time.perf_counter() - start) / len(rows)


def agreement(origin: OriginSimilarity, number: int) -> float:
    labels = []
    for sentences, pairs in groups(origin, "group", number):
        some = pairs.members[:100]
        labels.append([origin.label(sentences, some, mode)[0] for mode in ("pair", "group")])
    return float(spearmanr(*np.concatenate(labels, axis=1))[0])


def whole_runs(folder: Path, scratch: Path, pairs: int, details: dict[str, Any]) -> list[dict[str, Any]]:
    one, two = (harvest(folder, scratch, pairs // 2, processes) for processes in (1, 2))
    small, large = harvest(folder, scratch, pairs // 10, 1), harvest(folder, scratch, pairs, 1)
    details["pair mode, one process"], details["two processes of one thread"] = one, two
    details["a tenth of the pairs"], details["all pairs"] = small, large
    memory = large["anonymous MB"] / small["anonymous MB"]
    return [
        {"measure": "2 processes over 1, pairs/s", "ratio": one["seconds"] / two["seconds"], "wanted": ">= 1.5"},
        {"measure": f"{pairs} pairs over {pairs // 10}, peak memory", "ratio": memory, "wanted": "<= 1.1"},
    ]


def harvest(folder: Path, scratch: Path, pairs: int, processes: int) -> dict[str, float]:
    """Seconds of labelling, by the log, without the start of Python; and the most memory that is no mapped file."""
    output = scratch / "harvest"
    shutil.rmtree(output, ignore_errors=True)
    words = ["--origin", folder, "--pairs", pairs, "--pairs-per-file", max(100, pairs // 10), "--output", output]
    launch = [BIN / "accelerate", "launch", "--config_file", TWO_PROCESSES, "-m", "ctxsim_hf.harvest"]
    command = launch if processes == 2 else [BIN / "ctxsim", "harvest"]
    process = psutil.Popen([str(word) for word in [*command, *words]], env=os.environ | ONE_THREAD)
    peak = [0.0]
    threading.Thread(target=watch, args=(process, peak), daemon=True).start()
    if process.wait() != 0:
        raise SystemExit("ctxsim harvest failed")
    times = [datetime.fromisoformat(line[:19]) for line in (output / "stage.log").read_text().splitlines()]
    return {"pairs": pairs, "seconds": (times[-1] - times[-2]).total_seconds(), "anonymous MB": peak[0]}


def watch(process: psutil.Popen, peak: list[float]) -> None:
    while process.is_running():
        try:
            family = [process, *process.children(recursive=True)]
            peak[0] = max(peak[0], sum(anonymous_memory(member.pid) for member in family) / 1e6)
        except (psutil.Error, OSError):
            pass
        time.sleep(0.1)


if __name__ == "__main__":
    main()
