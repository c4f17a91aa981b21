"""The TF-IDF index in segments: what adding to it costs, and what searching costs when it was added to many times.

    python -m benchmarks.bench_segments [--chunks DIR] [--size 100000]        (default: the demo corpus)

Chunks are made as in bench_index. Segments are merged by the rule of an origin.
"""

import argparse
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bench_index import exhaust
from benchmarks.demo_data import Chunks, add_chunks_flag, draw_sentences, find_chunks, read_sentences, resampled
from benchmarks.measuring import timed
from benchmarks.report import report
from ctxsim_hf.origin.growing import count_to_merge
from ctxsim_hf.origin.tfidf_build import build_segment
from ctxsim_hf.origin.tfidf_index import TfidfIndex
from ctxsim_hf.origin.tfidf_merge import merge_tfidf
from ctxsim_hf.origin.tfidf_segment import TfidfSegment
from ctxsim_hf.origin.tfidf_weights import TfidfWeights

PARTS = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_chunks_flag(parser)
    parser.add_argument("--size", type=int, default=100_000, help="chunks to index")
    parser.add_argument("--sentences", type=int, default=1000, help="sentences to search for")
    parser.add_argument("--repeat", type=int, default=3, help="runs of adding and of each search; the fastest counts")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        corpus = read_sentences(find_chunks(args.chunks, place))
        sentences = draw_sentences(corpus, args.sentences, random.Random(0))
        rows, details = grow(list(resampled(corpus, args.size)), corpus, sentences, args, place)
    report("segments", rows, details)


def grow(
    chunks: Chunks, corpus: Chunks, sentences: Sequence[str], args: argparse.Namespace, place: Path
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Add a hundredth of the chunks to an index; screen the same chunks built at once and added in many parts."""
    whole, seconds = timed(lambda: TfidfIndex.build(chunks, place / "whole"))
    adding = min(add(whole, list(resampled(corpus, args.size // 100)), place / f"{run}") for run in range(args.repeat))
    parts, merging = add_in_parts(chunks, place / "parts")
    indexes = {"one": whole, **parts}
    times: dict[str, list[float]] = {name: [] for name in indexes}
    for _ in range(args.repeat):
        for name, index in indexes.items():
            times[name].append(timed(lambda index=index: exhaust(index.search(sentences, args.size // 50)))[1])
    best = {name: min(measured) for name, measured in times.items()}
    held = len(indexes["merged"].segments)
    searched = f"time to screen for {len(sentences):,} sentences, over one segment:"
    ratios = [
        ("adding 1 % of the chunks over building, time", adding / seconds, "<= 0.03"),
        (f"{searched} added in {PARTS} parts, merged to {held}", best["merged"] / best["one"], "<= 1.3"),
        (f"{searched} added in {PARTS} parts, none merged", best["apart"] / best["one"], ""),
        (f"all merging of {PARTS} parts over building at once, time", merging / seconds, ""),
    ]
    rows = [{"measure": measure, "ratio": ratio, "wanted": wanted} for measure, ratio, wanted in ratios]
    return rows, {"seconds": {"build": seconds, "add": adding, "merge": merging, "screen": times}}


def add(whole: TfidfIndex, chunks: Chunks, place: Path) -> float:
    """Return the seconds that it takes to add a segment to an index, and to write the version that knows of it."""
    place.mkdir()

    def add_segment() -> None:
        build_segment(chunks, place / "more")
        both = [*whole.segments, TfidfSegment.open(place / "more")]
        TfidfWeights.compute(both).save(place, both)

    return timed(add_segment)[1]


def add_in_parts(chunks: Chunks, place: Path) -> tuple[dict[str, TfidfIndex], float]:
    """Add part by part; return an index merged as an origin is, one never merged, and the seconds of merging."""
    merging = 0.0
    merged: list[TfidfSegment] = []
    apart: list[TfidfSegment] = []
    nothing = np.zeros(0, np.int64)
    for number in range(PARTS):
        part = slice(number * len(chunks) // PARTS, (number + 1) * len(chunks) // PARTS)
        build_segment(chunks[part], place / f"{number}")
        apart.append(TfidfSegment.open(place / f"{number}"))
        merged.append(apart[-1])
        if (count := count_to_merge([segment.num_chunks for segment in merged])) > 1:
            target = place / f"{number}-merged"
            merging += timed(lambda target=target, count=count: merge_tfidf(target, merged[-count:], nothing))[1]
            merged[-count:] = [TfidfSegment.open(target)]
    found = {"merged": merged, "apart": apart}
    indexes = {name: TfidfIndex(parts, TfidfWeights.compute(parts), nothing) for name, parts in found.items()}
    return indexes, merging


if __name__ == "__main__":
    main()
