"""The sentence encoder beside SentenceTransformer.encode at its defaults: the same folder, the same sentences.

    python -m benchmarks.bench_encode [--chunks DIR --tokenizer DIR] [--preset light]        (default: the demo corpus)

Sentences of a corpus, none twice, in random order; weights are random, which changes no time. Both take turns, so that
whatever else the machine does meets both.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoTokenizer, RobertaConfig

from benchmarks.demo_data import add_flags, chunks_and_tokenizer
from benchmarks.report import report
from ctxsim_hf import SentenceEncoder, SurrogateModel, read_chunks
from ctxsim_hf.presets import preset_sizes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_flags(parser)
    parser.add_argument("--preset", default="light", help="sizes of the surrogate")
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; the fastest counts")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        chunks, tokenizer = chunks_and_tokenizer(args, Path(scratch))
        folder = f"{scratch}/surrogate"
        make_surrogate(tokenizer, folder, args.preset)
        ours, theirs = SentenceEncoder.from_pretrained(folder), SentenceTransformer(folder)
    corpus = read_chunks(chunks)["sentences"][:]
    sentences = list(dict.fromkeys(sentence for chunk in corpus for sentence in chunk))
    random.Random(0).shuffle(sentences)
    sentences = sentences[: args.sentences]
    our_vectors, our_seconds, their_vectors, their_seconds = in_turn(
        lambda: ours.encode(sentences), lambda: theirs.encode(sentences), args.repeat
    )
    measure = f"encode ({args.preset}): sentences a second over SentenceTransformer's"
    details = {
        "sentences a second": {"ours": len(sentences) / our_seconds, "theirs": len(sentences) / their_seconds},
        "largest difference of a number": float(np.abs(our_vectors - their_vectors).max()),
        "threads": torch.get_num_threads(),
    }
    report("encode", [{"measure": measure, "ratio": their_seconds / our_seconds, "wanted": ">= 1.1"}], details)
    for name, value in details.items():
        print(f"{name}: {value}")


def make_surrogate(tokenizer_folder: str, folder: str, preset: str) -> None:
    tokenizer, sizes = AutoTokenizer.from_pretrained(tokenizer_folder), preset_sizes(preset, "surrogate")
    torch.manual_seed(0)
    config = RobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=sizes["hidden_size"],
        num_hidden_layers=sizes["layers"],
        num_attention_heads=sizes["heads"],
        intermediate_size=sizes["ffn_size"],
        max_position_embeddings=130,
    )
    SurrogateModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def in_turn(ours: Callable[[], Any], theirs: Callable[[], Any], repeat: int) -> tuple[Any, float, Any, float]:
    """What each gives, and the seconds of its fastest run."""
    found: list[Any] = [None, None]
    seconds: list[list[float]] = [[], []]
    for _ in range(repeat):
        for side, encode in enumerate((ours, theirs)):
            start = time.perf_counter()
            found[side] = encode()
            seconds[side].append(time.perf_counter() - start)
    return found[0], min(seconds[0]), found[1], min(seconds[1])


if __name__ == "__main__":
    main()
