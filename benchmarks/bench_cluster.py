"""What a second worker of datatrove's local executor brings: harvesting in pairs, the stage that takes longest.

    python -m benchmarks.bench_cluster [--chunks DIR] [--pairs 16000]        (default: the demo corpus)

Each worker has one thread; a run includes starting the workers, so it must be
long enough. The machine must be idle.
"""

import argparse
import os
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import torch
from datatrove.executor import LocalPipelineExecutor

import ctxsim_hf
from benchmarks.bench_growth import make_generator, write_documents
from benchmarks.demo_data import add_chunks_flag, find_chunks, read_sentences
from benchmarks.measuring import timed
from benchmarks.report import report
from ctxsim_hf.runtime.datatrove_executor import DatatroveExecutor

DOCUMENTS, TASKS, PAIRS_PER_FILE = 2000, 8, 250


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_chunks_flag(parser)
    parser.add_argument("--pairs", type=int, default=16_000, help="pairs to harvest")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each; the fastest counts")
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        corpus = read_sentences(find_chunks(args.chunks, place))
        write_documents(place / "some.jsonl", corpus, DOCUMENTS)
        ctxsim_hf.chunk(place / "some.jsonl", output=place / "chunks")
        ctxsim_hf.build_index(place / "chunks", generator=make_generator(corpus, place), output=place / "origin")
        seconds: dict[int, list[float]] = {1: [], 2: []}
        for run in range(args.repeat):  # in turn, so that a slow minute of the machine hits both
            for workers, times in seconds.items():
                executor = DatatroveExecutor(LocalPipelineExecutor, tasks=TASKS, workers=workers)
                options: dict[str, Any] = {"mode": "pair", "pairs_per_file": PAIRS_PER_FILE, "executor": executor}
                options |= {"pairs": args.pairs, "output": place / f"{workers}-{run}"}
                _, taken = timed(partial(ctxsim_hf.harvest, place / "origin", **options))
                times.append(taken)
                print(f"{workers} workers: {times[-1]:.1f} s", flush=True)
    ratio = min(seconds[1]) / min(seconds[2])
    rows = [{"measure": "1 worker over 2, time to harvest", "ratio": ratio, "wanted": ">= 1.6"}]
    report("cluster", rows, {"seconds": seconds})


if __name__ == "__main__":
    main()
