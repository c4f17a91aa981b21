"""Chunks -> the chunks of a share of the documents, a stage: `ctxsim sample`.

It shows what more documents would bring. A hash of its id decides whether a document is in the sample, so a smaller
share is a subset of every larger one. All held-out documents are kept, so that figures on them can be compared.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pyarrow.compute as pc
import pyarrow.parquet as pq
import xxhash
from annotated_types import Gt, Le
from tqdm import tqdm
from transformers.hf_argparser import HfArg

from ctxsim_hf.runtime.arguments import StageArguments
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.record import read_counts
from ctxsim_hf.runtime.stage import Stage
from ctxsim_hf.text.chunks import CHUNK_SPLITS, SHARD_PATTERN, describe_chunks

_SEED = 1  # a different hash than the one that holds out documents: training documents have no low values of that


@dataclass(kw_only=True)
class SampleArguments(StageArguments):
    chunks: str = HfArg(help="Folder made by ctxsim chunk.")
    share: Annotated[float, Gt(0), Le(1)] = HfArg(
        help="Share of the training documents to keep, above 0 and at most 1."
    )

    unrecorded: ClassVar[tuple[str, ...]] = (*StageArguments.unrecorded, "chunks")


def run(arguments: SampleArguments) -> dict[str, Any]:
    """Run the stage and return the counts that stage.json records."""
    inputs = {"chunks": describe_chunks(arguments.chunks)}
    with Stage("sample", arguments, inputs, packages=("pyarrow",)) as stage:
        if not stage.finished:
            stage.finish(_sample(stage, arguments))
        return read_counts(stage.output)


def is_sampled(doc_id: str, share: float) -> bool:
    """Return whether a document is in the sample, which depends on its id alone and never on other documents."""
    return xxhash.xxh3_64_intdigest(doc_id.encode(), _SEED) < share * 2**64


def _sample(stage: Stage, arguments: SampleArguments) -> dict[str, Any]:
    totals: Counter[str] = Counter()
    for shard in tqdm(sorted(Path(arguments.chunks).glob(SHARD_PATTERN)), "sample", unit="shard", disable=None):
        table = pq.read_table(shard).replace_schema_metadata()  # drop the counts of the shard, which no longer hold
        splits, documents = table["split"].to_pylist(), table["doc_id"].to_pylist()
        kept = [
            split == "held_out" or is_sampled(document, arguments.share)
            for split, document in zip(splits, documents, strict=True)
        ]
        table = table.filter(kept)
        for split in CHUNK_SPLITS:
            part = table.filter(pc.field("split") == split)
            totals[f"documents_{split}"] += len(part["doc_id"].unique())  # no document is in two shards
            totals[f"chunks_{split}"] += len(part)
            totals[f"sentences_{split}"] += pc.sum(pc.list_value_length(part["sentences"])).as_py() or 0
        name = shard.relative_to(arguments.chunks).as_posix()
        if not stage.has(name):
            with stage.writing(name) as path:
                pq.write_table(table, path, compression="zstd")
    if not totals["chunks_train"]:
        raise UserError(f"--share {arguments.share} leaves no training document; choose a larger share")
    return {
        name: {split: totals[f"{name}_{split}"] for split in CHUNK_SPLITS}
        for name in ("documents", "chunks", "sentences")
    }
