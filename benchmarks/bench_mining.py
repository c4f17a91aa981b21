"""Duplicates and communities beside `paraphrase_mining` and `community_detection` of sentence-transformers.

    python -m benchmarks.bench_mining [--sentences 100000] [--encoder FOLDER --chunks DIR]

The same vectors for both: those of an encoder for sentences of a corpus, or else random ones. Near copies of some of
them are planted. Every measurement is a process of its own, so that its peak memory is its own; what it takes to
import the libraries and to map the vectors is subtracted. Seconds are those of the CPU, since whatever else the
machine does would be counted otherwise. Sentence-transformers gets its defaults: `top_k` is 100, and the pairs are cut
at the threshold afterwards.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import report

SIZE = 256  # of random vectors
COPIES = 0.02  # share of sentences that are planted near copies
MAX_PAIRS, MIN_SIZE = 500_000, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=100_000)
    parser.add_argument("--encoder", help="folder of a surrogate or SentenceTransformer (default: random vectors)")
    parser.add_argument("--chunks", type=Path, help="folder made by ctxsim chunk, with --encoder")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)  # what, vectors, threshold: the other process
    args = parser.parse_args()
    if args.measure:
        measure(*args.measure)
        return
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "vectors.npy"
        np.save(file, make_vectors(args, Path(scratch)))
        compare(file, args)


def make_vectors(args: argparse.Namespace, scratch: Path) -> np.ndarray:
    """Return unit vectors, some of which are near copies of others."""
    draw = np.random.default_rng(0)
    if args.encoder is None:
        vectors = draw.standard_normal((args.sentences, SIZE), dtype=np.float32)
    else:
        from ctxsim_hf.mining.sentence_source import Sentences, sentences_of_chunks
        from ctxsim_hf.mining.sentence_vectors import encode_sentences

        texts = Sentences.collect(sentences_of_chunks(str(args.chunks)), min_words=4).texts
        random.Random(0).shuffle(texts)
        vectors = np.array(encode_sentences(args.encoder, texts[: args.sentences], scratch / "encoded.npy"))
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    copies = draw.choice(len(vectors), size=(2, round(COPIES * len(vectors))), replace=False)
    noise = draw.standard_normal((copies.shape[1], vectors.shape[1]), dtype=np.float32)
    vectors[copies[0]] = vectors[copies[1]] + 0.2 * noise / np.linalg.norm(noise, axis=1, keepdims=True)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def measure(what: str, file: str, threshold: str) -> None:
    """Run one of the four and print its figures and what it found as JSON."""
    # Imports are not part of the measurement, and only sentence-transformers needs torch.
    if what.startswith("theirs"):
        import torch
        from sentence_transformers.util import community_detection, paraphrase_mining_embeddings

        vectors: Any = torch.from_numpy(np.load(file))
    else:
        from ctxsim_hf.mining.communities import find_communities
        from ctxsim_hf.mining.pair_mining import mine_pairs

        vectors = np.load(file, mmap_mode="r")
    limit = float(threshold)
    before, start, started = peak_memory(), time.perf_counter(), time.process_time()
    if what == "theirs pairs":
        mined = paraphrase_mining_embeddings(vectors, max_pairs=MAX_PAIRS)
        found: list[Any] = [[i, j] for score, i, j in mined if score >= limit]
    elif what == "theirs communities":
        found = [sorted(group) for group in community_detection(vectors, threshold=limit, min_community_size=MIN_SIZE)]
    elif what == "ours pairs":
        found = mine_pairs(vectors, limit, MAX_PAIRS).places.tolist()
    else:
        found = [sorted(group.members.tolist()) for group in find_communities(vectors, limit, MIN_SIZE)]
    seconds = {"seconds": time.perf_counter() - start, "CPU seconds": time.process_time() - started}
    print(json.dumps(seconds | {"MB": (peak_memory() - before) / 1e6, "found": found}))


def peak_memory() -> int:
    """The most memory this process ever held; ru_maxrss would start as high as that of the process that started it."""
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise SystemExit("expected the peak of memory, VmHWM, in /proc/self/status, as Linux has it")


def compare(file: Path, args: argparse.Namespace) -> None:
    from ctxsim_hf.mining.unrelated import UnrelatedPairs, rare_percentile

    vectors = np.load(file, mmap_mode="r")
    unrelated = UnrelatedPairs.sample(vectors)
    rows, details = [], {"sentences": len(vectors), "numbers of a vector": vectors.shape[1]}
    for kind, neighbours in (("pairs", 0.1), ("communities", 1.0)):
        threshold = unrelated.threshold(rare_percentile(len(vectors), neighbours))
        ours, theirs = (in_another_process(f"{who} {kind}", file, threshold) for who in ("ours", "theirs"))
        same = {tuple(found) for found in ours.pop("found")}, {tuple(found) for found in theirs.pop("found")}
        details[kind] = {
            "threshold": threshold,
            "found by both, by us alone, by them alone": [
                len(same[0] & same[1]),
                len(same[0] - same[1]),
                len(same[1] - same[0]),
            ],
            "ours": ours,
            "sentence-transformers": theirs,
        }
        for measure_, wanted in (("CPU seconds", "<= 0.5"), ("MB", "<= 0.25")):
            ratio = ours[measure_] / theirs[measure_]
            rows.append({"measure": f"{kind}: {measure_} over theirs", "ratio": ratio, "wanted": wanted})
        share = len(same[0] & same[1]) / max(1, len(same[0] | same[1]))
        rows.append({"measure": f"{kind}: share that both found", "ratio": share, "wanted": ">= 0.999"})
    report("mining", rows, details)
    print(json.dumps(details, indent=2))


def in_another_process(what: str, file: Path, threshold: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.bench_mining", "--measure", what, str(file), str(threshold)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


if __name__ == "__main__":
    main()
