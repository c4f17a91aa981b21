"""Chunks, sentences and a tokenizer to measure on: the user's, or made from the documentation on this machine."""

import argparse
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import ctxsim_hf

SCRIPT = Path(__file__).parents[1] / "examples/demo_corpus.py"

Chunks = Sequence[Sequence[str]]


def write_demo_corpus(path: Path) -> None:
    subprocess.run([sys.executable, SCRIPT, path], check=True)


def add_chunks_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--chunks", type=Path, help="folder made by ctxsim chunk (default: the demo corpus)")


def add_flags(parser: argparse.ArgumentParser) -> None:
    add_chunks_flag(parser)
    parser.add_argument("--tokenizer", type=Path, help="folder made by ctxsim train-tokenizer")


def find_chunks(given: Path | None, scratch: Path) -> str:
    """Return the folder that was given, or else one of the demo corpus."""
    if given is not None:
        return str(given)
    write_demo_corpus(scratch / "documentation.jsonl")
    ctxsim_hf.chunk(scratch / "documentation.jsonl", output=scratch / "demo_chunks")
    return str(scratch / "demo_chunks")


def chunks_and_tokenizer(args: argparse.Namespace, scratch: Path) -> tuple[str, str]:
    """Return what the flags of `add_flags` name; the tokenizer is trained if none is named."""
    chunks = find_chunks(args.chunks, scratch)
    if args.tokenizer:
        return chunks, str(args.tokenizer)
    ctxsim_hf.train_tokenizer(chunks, output=scratch / "demo_tokenizer", lowercase=True)
    return chunks, str(scratch / "demo_tokenizer")


def read_sentences(chunks: str) -> Chunks:
    return ctxsim_hf.read_chunks(chunks)["sentences"][:]


def resampled(corpus: Chunks, size: int) -> Iterator[list[str]]:
    """Join the first half of one chunk to the second half of another, to any number of chunks."""
    chooser = random.Random(size)
    for _ in range(size):
        first, second = chooser.choice(corpus), chooser.choice(corpus)
        yield [*first[: len(first) // 2], *second[len(second) // 2 :]]


def draw_sentences(corpus: Chunks, number: int, chooser: random.Random) -> list[str]:
    return [chooser.choice(chooser.choice(corpus)) for _ in range(number)]


def distinct_sentences(chunks: str, number: int) -> list[str]:
    """Return sentences of a corpus, none twice, in random order."""
    sentences = list(dict.fromkeys(sentence for chunk in read_sentences(chunks) for sentence in chunk))
    random.Random(0).shuffle(sentences)
    return sentences[:number]
