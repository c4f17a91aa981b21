"""Chunking: what a second worker brings, and whether memory stays flat when the corpus doubles.

python -m benchmarks.bench_corpus [--corpus FOLDER]        (default: the demo corpus)
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import psutil

from benchmarks.demo_data import write_demo_corpus
from benchmarks.report import report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, help="folder of documents to chunk")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; the fastest counts")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        corpus = args.corpus or place / "documentation"
        if args.corpus is None:
            corpus.mkdir()
            write_demo_corpus(corpus / "documentation.jsonl")
        shutil.copytree(corpus, place / "twice/first")
        other_ids_and_texts(place / "twice/first", place / "twice/second")
        speeds: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(args.repeat):  # in turn, so that a slow minute of the machine hits both
            for workers, seconds in speeds.items():
                seconds.append(chunk(corpus, place / "out", workers)["seconds"])
        once = chunk(corpus, place / "out", workers=2, watched=True)
        twice = chunk(place / "twice", place / "out", workers=2, watched=True)
    report(
        "corpus",
        [
            {
                "measure": "2 workers over 1 worker, speed",
                "ratio": min(speeds[1]) / min(speeds[2]),
                "wanted": ">= 1.6",
            },
            {
                "measure": "twice the corpus over once, peak memory",
                "ratio": twice["mb"] / once["mb"],
                "wanted": "<= 1.1",
            },
        ],
        {"seconds, one worker": speeds[1], "seconds, two workers": speeds[2], "once": once, "twice": twice},
    )


def other_ids_and_texts(source: Path, target: Path) -> None:
    """A second copy whose documents differ, since exact duplicates would be passed over."""
    import gzip

    for path in sorted(source.rglob("*.jsonl*")):
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        opener: Any = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8") as read, opener(copy, "wt", encoding="utf-8") as write:
            for line in read:
                row = json.loads(line)
                write.write(json.dumps(row | {"text": row["text"] + "\n\nThe end."}, ensure_ascii=False) + "\n")


def chunk(corpus: Path, output: Path, workers: int, watched: bool = False) -> dict[str, float]:
    """Seconds, and if watched (which costs time) the peak memory of the process and its workers together."""
    shutil.rmtree(output, ignore_errors=True)
    words = ["chunk", "--corpus", str(corpus), "--output", str(output), "--workers", str(workers)]
    start = time.perf_counter()
    process = psutil.Popen([Path(sys.executable).with_name("ctxsim"), *words], stdout=subprocess.DEVNULL)
    peak = [0]
    if watched:
        threading.Thread(target=watch, args=(process, peak), daemon=True).start()
    if process.wait() != 0:
        raise SystemExit(f"ctxsim {' '.join(words)} failed")
    return {"seconds": time.perf_counter() - start, "mb": peak[0] / 1e6}


def watch(process: psutil.Popen, peak: list[int]) -> None:
    while process.is_running():
        try:
            family = [process, *process.children(recursive=True)]
            # Unique memory: pages that forked workers share with their parent count once.
            peak[0] = max(peak[0], sum(member.memory_full_info().uss for member in family))
        except psutil.Error:
            pass
        time.sleep(0.05)


if __name__ == "__main__":
    main()
