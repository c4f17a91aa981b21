"""Chunks and a tokenizer to measure on: the user's, or made from the documentation on this machine."""

import argparse
from pathlib import Path

from ctxsim_hf.cli import main as ctxsim
from examples.demo_corpus import write_demo_corpus


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--chunks", type=Path, help="folder made by ctxsim chunk (default: the demo corpus)")
    parser.add_argument("--tokenizer", type=Path, help="folder made by ctxsim train-tokenizer")


def chunks_and_tokenizer(args: argparse.Namespace, scratch: Path) -> tuple[str, str]:
    if args.chunks and args.tokenizer:
        return str(args.chunks), str(args.tokenizer)
    write_demo_corpus(scratch / "documentation.jsonl")
    chunks, tokenizer = str(scratch / "chunks"), str(scratch / "tokenizer")
    for words in (
        ["chunk", "--corpus", str(scratch / "documentation.jsonl"), "--output", chunks],
        ["train-tokenizer", "--chunks", chunks, "--lowercase", "--output", tokenizer],
    ):
        if ctxsim(words):
            raise SystemExit(f"ctxsim {' '.join(words)} failed")
    return chunks, tokenizer
