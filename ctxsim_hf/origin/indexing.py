"""Chunks and trained context models -> one origin folder, all that similarity needs: `ctxsim index`.

origin.json       settings                 background.json   the sentences a score is compared with
tokenizer/  discriminator/  generator/     the models; generator-<direction>/ where each has its own
index/            see context_index.py     lexical/          word frequencies for the lexical term
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm
from transformers.hf_argparser import HfArg

from ctxsim_hf.origin.context_arrays import num_contexts, write_context_arrays
from ctxsim_hf.origin.context_index import CHUNKS, SENTENCE_KEYS, TFIDF, TOKENS, sentence_key
from ctxsim_hf.origin.models import OriginModels
from ctxsim_hf.origin.settings import SETTINGS_FILE, OriginSettings
from ctxsim_hf.origin.tfidf_index import TfidfIndex
from ctxsim_hf.runtime.arguments import StageArguments
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import whole_folder, write_json
from ctxsim_hf.runtime.stage import Stage, describe_stage, read_stage
from ctxsim_hf.text.chunks import SHARD_PATTERN, describe_chunks
from ctxsim_hf.text.lexical import TfidfCosine
from ctxsim_hf.text.tokenized import ARRAYS, TokenizedChunks, tokenize_chunks

BACKGROUND_FILE = "background.json"
BACKGROUND_TOKENS = (5, 40)  # neither fragments nor monsters


@dataclass(kw_only=True)
class IndexArguments(StageArguments):
    chunks: str = HfArg(help="Folder made by ctxsim chunk.")
    discriminator: str = HfArg(help="Folder made by ctxsim train discriminator.")
    generator: list[str] = HfArg(help="Folder made by ctxsim train generator, or one for each direction.")
    ngrams: str = HfArg(default="uni+bigrams", help="What TF-IDF counts: uni+bigrams, or bigrams as the paper does.")
    background: int = HfArg(default=256, help="Background sentences to keep in the folder.")
    seed: int = HfArg(default=0, help="Seed of the background.")
    workers: int = HfArg(default=1, help="Processes of one thread each; the output is the same for any number.")

    unrecorded: ClassVar[tuple[str, ...]] = (
        *(*StageArguments.unrecorded, "chunks", "discriminator", "generator", "workers"),
    )

    def __post_init__(self) -> None:
        for name in ("background", "workers"):
            if getattr(self, name) < 1:
                raise UserError(f"--{name} must be at least 1, got {getattr(self, name)}")


def run(arguments: IndexArguments) -> dict[str, Any]:
    """Run the stage; returns the counts that stage.json records."""
    inputs = {
        "chunks": describe_chunks(arguments.chunks),
        "discriminator": describe_stage(arguments.discriminator, "train discriminator"),
        "generator": [describe_stage(folder, "train generator") for folder in arguments.generator],
    }
    with Stage("index", arguments, inputs, packages=("torch", "transformers", "tokenizers", "numpy")) as stage:
        if not stage.finished:
            stage.finish(_write(stage, arguments))
        counts: dict[str, Any] = read_stage(stage.output)["counts"]
        return counts


def _write(stage: Stage, arguments: IndexArguments) -> dict[str, Any]:
    models = OriginModels.from_training(arguments.discriminator, arguments.generator)
    models.copy_to(stage.folder)
    chunks = tokenize_chunks(arguments.chunks, arguments.discriminator, "train")
    index = stage.folder / "index"
    for name in ARRAYS:
        if not stage.has(f"index/{TOKENS}/{name}.npy"):
            with stage.writing(f"index/{TOKENS}/{name}.npy") as path, path.open("wb") as file:
                np.save(file, getattr(chunks, name))
    if not stage.has(f"index/{CHUNKS}"):
        _write_texts(stage, Path(arguments.chunks))
    texts = pa.ipc.open_file(pa.memory_map(str(index / CHUNKS))).read_all()
    if not stage.has(f"index/{TFIDF}"):
        _build_tfidf(texts, index / TFIDF, arguments.ngrams)
    if not stage.has(f"index/{SENTENCE_KEYS}"):
        keys = np.fromiter((sentence_key(s) for row in _sentences(texts) for s in row), np.uint64, len(chunks))
        with stage.writing(f"index/{SENTENCE_KEYS}") as path, path.open("wb") as file:
            np.save(file, keys)
    if not stage.has("lexical"):
        with whole_folder(stage.folder / "lexical") as folder:
            TfidfCosine.from_sentences(s for row in _sentences(texts) for s in row).save(folder)
    write_context_arrays(stage, chunks, arguments.workers)
    write_json(stage.folder / BACKGROUND_FILE, _background(texts, chunks, arguments))
    write_json(stage.folder / SETTINGS_FILE, OriginSettings().to_json())
    return {"chunks": len(chunks.chunk_starts) - 1, "sentences": len(chunks), "contexts": num_contexts(chunks)}


def _write_texts(stage: Stage, chunks: Path) -> None:
    """The train chunks as one memory-mappable table."""
    columns = ["chunk_id", "doc_id", "source", "split", "sentences"]
    shards = sorted(chunks.glob(SHARD_PATTERN))
    schema = pq.read_schema(shards[0])
    schema = pa.schema([schema.field(name) for name in columns])
    with stage.writing(f"index/{CHUNKS}") as path, pa.ipc.new_file(str(path), schema) as writer:
        for shard in tqdm(shards, desc="texts", unit="shard", disable=None):
            writer.write_table(pq.read_table(shard, columns=columns, filters=[("split", "=", "train")]).cast(schema))


def _sentences(texts: pa.Table) -> Iterator[list[str]]:
    """The sentences of each chunk, a block at a time."""
    for batch in texts.select(["sentences"]).to_batches(max_chunksize=1000):
        yield from batch.column(0).to_pylist()


def _build_tfidf(texts: pa.Table, folder: Path, ngrams: str) -> None:
    TfidfIndex.build(_sentences(texts), folder, ngrams=ngrams)


def _background(texts: pa.Table, chunks: TokenizedChunks, arguments: IndexArguments) -> list[str]:
    """Random sentences of the corpus, of ordinary length."""
    low, high = BACKGROUND_TOKENS
    ordinary = np.flatnonzero((chunks.lengths >= low) & (chunks.lengths <= high))
    if len(ordinary) == 0:
        raise UserError(f"no sentence has {low} to {high} tokens, so there is no background; add documents")
    drawn = np.random.default_rng(arguments.seed).permutation(ordinary)[: arguments.background]
    numbers = chunks.chunks_of(drawn)
    # Not `take`, which would copy the whole column, and cannot where it has more than 2 GiB.
    rows = [texts["sentences"].slice(number, 1).to_pylist()[0] for number in numbers.tolist()]
    return [row[place] for row, place in zip(rows, drawn - chunks.chunk_starts[numbers], strict=True)]


def read_background(folder: Path) -> list[str]:
    background: list[str] = json.loads((folder / BACKGROUND_FILE).read_text("utf-8"))
    return background
