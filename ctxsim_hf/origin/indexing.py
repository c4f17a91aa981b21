"""Put chunks and context models into an origin folder, all that similarity needs: `ctxsim index`. See layout.py."""

from pathlib import Path
from typing import Any

import numpy as np

from ctxsim_hf.context_models.registry import describe_context_model
from ctxsim_hf.origin.background_thresholds import write_background_thresholds
from ctxsim_hf.origin.context_index import map_texts
from ctxsim_hf.origin.growing import PACKAGES, grow
from ctxsim_hf.origin.index_arguments import IndexArguments
from ctxsim_hf.origin.layout import SIGNALS
from ctxsim_hf.origin.model_copies import copy_models
from ctxsim_hf.origin.segment_build import count_sentences, sentences_of, write_segment
from ctxsim_hf.origin.segments import SEGMENTS, VERSIONS, short_digest, version_name
from ctxsim_hf.origin.signals import check_encoder, copy_encoder, describe_encoder
from ctxsim_hf.origin.version_build import write_version
from ctxsim_hf.runtime.blocks import Executor, LocalExecutor
from ctxsim_hf.runtime.fetch import fetch_folder, fetch_model
from ctxsim_hf.runtime.files import digest_file
from ctxsim_hf.runtime.record import read_counts
from ctxsim_hf.runtime.stage import Stage
from ctxsim_hf.text.chunks import describe_chunking, describe_chunks
from ctxsim_hf.text.fast_tokenizer import open_tokenizer
from ctxsim_hf.text.lexical import TfidfCosine


def run(arguments: IndexArguments, executor: Executor | None = None) -> dict[str, Any]:
    """Run the stage; return the counts that stage.json records.

    Args:
        arguments (`IndexArguments`): What to index, or what to change.
        executor (`Executor`, *optional*): Tokenises the chunks and computes what context models store. None uses
            `arguments.workers` processes on this machine.
    """
    if arguments.origin is not None:
        return grow(arguments, executor)
    models = [fetch_model(name, "a context model") for name in arguments.models]
    inputs: dict[str, Any] = {
        "chunks": describe_chunks(str(arguments.chunks)),
        "chunking": describe_chunking(str(arguments.chunks)),
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
    if arguments.bridges is not None:
        inputs["bridges"] = arguments.bridges
    with Stage("index", arguments, inputs, packages=PACKAGES) as stage:
        if not stage.finished:
            if encoder is not None:
                check_encoder(encoder)  # before anything is written
            copy_models(stage.folder, models, arguments.tokenizer, arguments.cloze_only, arguments.bridges)
            if encoder is not None:
                copy_encoder(encoder, stage.folder / SIGNALS / "encoder")
            _write(stage, arguments, inputs["chunks"]["xxh3_128"], executor)
        counts = read_counts(stage.output)
    write_background_thresholds(stage.output)
    return counts


def _write(stage: Stage, arguments: IndexArguments, digest: str, executor: Executor | None) -> None:
    """Write the first segment and the first version."""
    segment = stage.folder / SEGMENTS / short_digest(digest)
    storing = executor or LocalExecutor(arguments.workers, "contexts")
    write_segment(segment, stage.folder, Path(str(arguments.chunks)), arguments.ngrams, executor, storing)
    nothing = np.zeros(0, np.int64)
    name = version_name([segment.name], nothing)
    if not stage.has(f"{VERSIONS}/{name}"):
        words = TfidfCosine.from_sentences(s for row in sentences_of(map_texts(segment)) for s in row)
        background = arguments.background, arguments.seed
        write_version(stage.folder / VERSIONS / name, stage.folder, [segment], nothing, words, background)
    stage.finish(count_sentences(segment), version=name)
