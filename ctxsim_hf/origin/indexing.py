"""Put chunks and context models into an origin folder, all that similarity needs: `ctxsim index`. See layout.py."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from annotated_types import Ge
from tqdm import tqdm
from transformers.hf_argparser import HfArg

from ctxsim_hf.context_models.registry import describe_context_model
from ctxsim_hf.encoder.encoder_signal import EncoderSignal
from ctxsim_hf.origin.background import BACKGROUND_FILE, CLOZE_BACKGROUND
from ctxsim_hf.origin.background_thresholds import write_background_thresholds
from ctxsim_hf.origin.cloze_signal import ClozeModel
from ctxsim_hf.origin.context_arrays import ContextArrays
from ctxsim_hf.origin.context_index import CHUNKS, SENTENCE_KEYS, TFIDF, TOKENS, open_texts, sentence_key
from ctxsim_hf.origin.layout import INDEX, SIGNALS, TOKENIZER, Layout, default_device
from ctxsim_hf.origin.model_copies import copy_models
from ctxsim_hf.origin.signals import CLOZE, copy_encoder, describe_encoder
from ctxsim_hf.origin.tfidf_index import TfidfIndex
from ctxsim_hf.runtime.arguments import StageArguments
from ctxsim_hf.runtime.blocks import Executor, LocalExecutor, execute
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.fetch import fetch_folder, fetch_model
from ctxsim_hf.runtime.files import digest_file, whole_folder, write_json
from ctxsim_hf.runtime.record import read_stage
from ctxsim_hf.runtime.stage import Stage
from ctxsim_hf.runtime.validation import Count, OneOf, Seed
from ctxsim_hf.text.chunks import SHARD_PATTERN, describe_chunks
from ctxsim_hf.text.fast_tokenizer import open_tokenizer
from ctxsim_hf.text.lexical import TfidfCosine
from ctxsim_hf.text.tokenized import ARRAYS, TokenizedChunks, tokenize_chunks
from ctxsim_hf.text.word_ngrams import NGRAMS

BACKGROUND_TOKENS = (5, 40)  # without fragments and overlong sentences
PACKAGES = ("torch", "transformers", "tokenizers", "numpy")


@dataclass(kw_only=True)
class IndexArguments(StageArguments):
    """The arguments of `ctxsim index`."""

    chunks: str = HfArg(help="Folder made by ctxsim chunk.")
    discriminator: str | None = HfArg(
        default=None, help="Folder made by ctxsim train discriminator, which ranks candidate contexts; optional."
    )
    generator: list[str] = HfArg(
        default_factory=list, help="Folder made by ctxsim train generator, or one for each direction."
    )
    context_model: list[str] = HfArg(
        default_factory=list,
        help="Any other context model: its folder, a GGUF file, package:NAME/PATH or its id on the Hub.",
    )
    cloze_only: bool = HfArg(
        default=False,
        help="Let a causal language model of --context-model give the signal `cloze` alone, so that a generator may "
        "answer the terms of the fit score.",
    )
    encoder: str | None = HfArg(
        default=None, help="A surrogate or SentenceTransformer, folder or id, for the signal `encoder`."
    )
    tokenizer: str | None = HfArg(
        default=None, help="Folder with the tokenizer that the index counts by; by default that of the first model."
    )
    ngrams: Annotated[str, OneOf(NGRAMS)] = HfArg(
        default="uni+bigrams", help="Terms of TF-IDF: uni+bigrams, or bigrams as in the paper."
    )
    background: Annotated[int, Ge(2)] = HfArg(default=1000, help="Number of background sentences to keep.")
    seed: Seed = HfArg(default=0, help="Random seed of the background.")
    workers: Count = HfArg(default=1, help="Processes of one thread each; the output is the same for any number.")

    unrecorded: ClassVar[tuple[str, ...]] = (
        *(*StageArguments.unrecorded, "chunks", "discriminator", "generator", "context_model", "encoder"),
        *("cloze_only", "tokenizer", "workers"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.models:
            raise UserError("an index needs a context model: name one with --generator or --context-model")

    @property
    def models(self) -> list[str]:
        """The context models, the discriminator first."""
        return [*([self.discriminator] if self.discriminator else []), *self.generator, *self.context_model]


def run(arguments: IndexArguments, executor: Executor | None = None) -> dict[str, Any]:
    """Run the stage; return the counts that stage.json records.

    Args:
        arguments (`IndexArguments`): What to index.
        executor (`Executor`, *optional*): Tokenises the chunks and computes what context models store. None uses
            `arguments.workers` processes on this machine.
    """
    models = [fetch_model(name, "a context model") for name in arguments.models]
    inputs: dict[str, Any] = {
        "chunks": describe_chunks(arguments.chunks),
        "context_models": [describe_context_model(folder) for folder in models],
    }
    if arguments.tokenizer is not None:
        open_tokenizer(arguments.tokenizer)  # refuses a folder that has none
        inputs["tokenizer"] = {"xxh3_128": digest_file(Path(arguments.tokenizer, "tokenizer.json"))}
    encoder = None
    if arguments.encoder is not None:
        encoder = fetch_folder(arguments.encoder, "a sentence encoder")
        inputs["encoder"] = describe_encoder(encoder)
    if arguments.cloze_only:
        inputs["cloze_only"] = True
    with Stage("index", arguments, inputs, packages=PACKAGES) as stage:
        if not stage.finished:
            if encoder is not None:
                EncoderSignal.open(encoder)  # refuses a folder without an encoder before anything is written
            copy_models(stage.folder, models, arguments.tokenizer, arguments.cloze_only)
            if encoder is not None:
                copy_encoder(encoder, stage.folder / SIGNALS / "encoder")
            stage.finish(_write(stage, arguments, executor))
        counts: dict[str, Any] = read_stage(stage.output)["counts"]
    write_background_thresholds(stage.output)
    return counts


def _write(stage: Stage, arguments: IndexArguments, executor: Executor | None) -> dict[str, Any]:
    chunks = tokenize_chunks(arguments.chunks, stage.folder / TOKENIZER, "train", executor=executor)
    index = stage.folder / INDEX
    for name in ARRAYS:
        _save_array(stage, f"{INDEX}/{TOKENS}/{name}.npy", getattr(chunks, name))
    if not stage.has(f"{INDEX}/{CHUNKS}"):
        _write_texts(stage, Path(arguments.chunks))
    texts = open_texts(index)
    if not stage.has(f"{INDEX}/{TFIDF}"):
        TfidfIndex.build(_sentences(texts), index / TFIDF, ngrams=arguments.ngrams)
    if not stage.has(f"{INDEX}/{SENTENCE_KEYS}"):
        keys = np.fromiter((sentence_key(s) for row in _sentences(texts) for s in row), np.uint64, len(chunks))
        _save_array(stage, f"{INDEX}/{SENTENCE_KEYS}", keys)
    if not stage.has(f"{SIGNALS}/words"):
        with whole_folder(stage.folder / SIGNALS / "words") as folder:
            TfidfCosine.from_sentences(s for row in _sentences(texts) for s in row).save(folder)
    execute(ContextArrays(stage.folder), executor or LocalExecutor(arguments.workers, "contexts"))
    background = _background(texts, chunks, arguments)
    write_json(stage.folder / BACKGROUND_FILE, background)
    _write_cloze_background(stage, background)
    return {"chunks": chunks.num_chunks, "sentences": len(chunks), "contexts": chunks.num_contexts}


def _write_cloze_background(stage: Stage, background: list[str]) -> None:
    """Keep what the background suggests to a language model, so that opening an origin need not ask again."""
    name = f"{SIGNALS}/{CLOZE}/{CLOZE_BACKGROUND}"
    if stage.has(name):
        return
    for model in Layout.load(stage.folder).open_models(stage.folder, default_device()).values():
        if isinstance(model, ClozeModel):
            _save_array(stage, name, model.vectors(background))


def _save_array(stage: Stage, name: str, array: np.ndarray) -> None:
    if not stage.has(name):
        with stage.writing(name) as path, path.open("wb") as file:
            np.save(file, array)


def _write_texts(stage: Stage, chunks: Path) -> None:
    """Write the train chunks as one memory-mappable table."""
    columns = ["chunk_id", "doc_id", "source", "split", "sentences"]
    shards = sorted(chunks.glob(SHARD_PATTERN))
    schema = pq.read_schema(shards[0])
    schema = pa.schema([schema.field(name) for name in columns])
    with stage.writing(f"{INDEX}/{CHUNKS}") as path, pa.ipc.new_file(str(path), schema) as writer:
        for shard in tqdm(shards, desc="texts", unit="shard", disable=None):
            writer.write_table(pq.read_table(shard, columns=columns, filters=[("split", "=", "train")]).cast(schema))


def _sentences(texts: pa.Table) -> Iterator[list[str]]:
    """Yield the sentences of each chunk, read a block at a time."""
    for batch in texts.select(["sentences"]).to_batches(max_chunksize=1000):
        yield from batch.column(0).to_pylist()


def _background(texts: pa.Table, chunks: TokenizedChunks, arguments: IndexArguments) -> list[str]:
    """Draw random sentences of the corpus, of ordinary length."""
    low, high = BACKGROUND_TOKENS
    ordinary = np.flatnonzero((chunks.lengths >= low) & (chunks.lengths <= high))
    if len(ordinary) == 0:
        raise UserError(f"no sentence has {low} to {high} tokens, so there is no background; add documents")
    drawn = np.random.default_rng(arguments.seed).permutation(ordinary)[: arguments.background]
    numbers = chunks.chunks_of(drawn)
    # Not `take`, which would copy the whole column, and cannot where it has more than 2 GiB.
    rows = [texts["sentences"].slice(number, 1).to_pylist()[0] for number in numbers.tolist()]
    return [row[place] for row, place in zip(rows, drawn - chunks.chunk_starts[numbers], strict=True)]
