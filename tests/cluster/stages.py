"""The stages that run on a cluster, small: each by an executor, to be compared with a run in this process."""

from pathlib import Path
from typing import Any

from planted import PlantedCorpus
from tiny_language_model import index_tiny_llama

import ctxsim_hf

SHARD_CHARS = 50_000
HARVEST: dict[str, Any] = {"num_contexts": 10, "background_size": 40, "screen_chunks": 100, "pairs": 300}
HARVEST |= {"near": 5, "document": 4, "unrelated": 1, "pairs_per_file": 75}


def prepare(folder: Path) -> None:
    """Write a corpus, chunks, a hardly trained generator and the origins of it and of a language model, from which the
    stages start."""
    PlantedCorpus().write(folder / "texts.jsonl")
    chunks, tokenizer = folder / "chunks", folder / "tokenizer"
    ctxsim_hf.chunk(folder / "texts.jsonl", output=chunks, held_out=0.05, shard_chars=SHARD_CHARS)
    ctxsim_hf.train_tokenizer(chunks, output=tokenizer, vocab_size=800, lowercase=True)
    ctxsim_hf.train_context_model(
        "light", chunks=chunks, tokenizer=tokenizer, preset="tiny", max_steps=3, output=folder / "generator"
    )
    ctxsim_hf.build_index(chunks, generator=folder / "generator", output=folder / "origin")
    index_tiny_llama(chunks, folder / "language-model")


def chunk(start: Path, output: Path, executor: Any = None) -> dict[str, Any]:
    """Cut the corpus into several shards."""
    return ctxsim_hf.chunk(start / "texts.jsonl", output=output, shard_chars=SHARD_CHARS, executor=executor)


def index(start: Path, output: Path, executor: Any = None) -> dict[str, Any]:
    """Index the chunks."""
    return ctxsim_hf.build_index(
        start / "chunks", output=output, generator=start / "generator", background=500, executor=executor
    )


def harvest(start: Path, output: Path, executor: Any = None) -> dict[str, Any]:
    """Harvest the origin into several files."""
    return ctxsim_hf.harvest(start / "origin", output=output, **HARVEST, executor=executor)


def vectors(start: Path, output: Path, executor: Any = None) -> dict[str, Any]:
    """Compute the vectors of sentences by a language model, in several files."""
    sizes: dict[str, Any] = {"sentences": 200, "sentences_per_file": 60, "max_tokens": 200}
    return ctxsim_hf.harvest_vectors(start / "language-model/origin", output=output, **sizes, executor=executor)


STAGES = {"chunk": chunk, "index": index, "harvest": harvest, "vectors": vectors}
