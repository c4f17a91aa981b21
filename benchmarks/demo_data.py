"""Chunks and a tokenizer to measure on: the user's, or made from the documentation on this machine."""

import argparse
import subprocess
import sys
from pathlib import Path

import ctxsim_hf

SCRIPT = Path(__file__).parents[1] / "examples/demo_corpus.py"


def write_demo_corpus(path: Path) -> None:
    subprocess.run([sys.executable, SCRIPT, path], check=True)


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--chunks", type=Path, help="folder made by ctxsim chunk (default: the demo corpus)")
    parser.add_argument("--tokenizer", type=Path, help="folder made by ctxsim train-tokenizer")


def chunks_and_tokenizer(args: argparse.Namespace, scratch: Path) -> tuple[str, str]:
    if args.chunks and args.tokenizer:
        return str(args.chunks), str(args.tokenizer)
    write_demo_corpus(scratch / "documentation.jsonl")
    chunks, tokenizer = scratch / "chunks", scratch / "tokenizer"
    ctxsim_hf.chunk(scratch / "documentation.jsonl", output=chunks)
    ctxsim_hf.train_tokenizer(chunks, output=tokenizer, lowercase=True)
    return str(chunks), str(tokenizer)
