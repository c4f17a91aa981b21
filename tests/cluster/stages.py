"""The stages that run on a cluster, small: each by an executor, to be compared with a run in this process."""

from pathlib import Path
from typing import Any

import ctxsim_hf

HARVEST: dict[str, Any] = {"num_contexts": 10, "background_size": 40, "screen_chunks": 100, "pairs": 300}
HARVEST |= {"near": 5, "document": 4, "unrelated": 1, "pairs_per_file": 75}


def chunk(planted: Path, output: Path, executor: Any = None) -> dict[str, Any]:
    """Cut the planted corpus into several shards."""
    return ctxsim_hf.chunk(planted / "texts.jsonl", output=output, shard_chars=50_000, executor=executor)


def index(planted: Path, output: Path, executor: Any = None) -> dict[str, Any]:
    """Index the planted chunks."""
    models = {"discriminator": planted / "discriminator", "generator": planted / "generator"}
    return ctxsim_hf.build_index(planted / "chunks", output=output, **models, executor=executor)


def harvest(planted: Path, output: Path, executor: Any = None) -> dict[str, Any]:
    """Harvest the planted origin into several files."""
    return ctxsim_hf.harvest(planted / "origin", output=output, **HARVEST, executor=executor)


STAGES = {"chunk": chunk, "index": index, "harvest": harvest}
