"""How fast a language model reads sentences of a corpus, measured once for each folder of `ctxsim adapt`."""

import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from ctxsim_hf.context_models.causal.scoring import CausalContextModel
from ctxsim_hf.context_models.registry import context_model_class, model_type_of
from ctxsim_hf.origin.layout import default_device
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.fetch import fetch_model
from ctxsim_hf.runtime.files import read_sealed, seal, write_json
from ctxsim_hf.text.chunks import SHARD_PATTERN

EXPECTED = "a causal language model"
MEASURED_SECONDS = 5
BLOCK = 64  # sentences, as in a group of the harvest
MAX_LETTERS = 200


def check_language_model(name: str) -> None:
    """Refuse what is no causal language model, before an hour of chunking."""
    path = fetch_model(name, EXPECTED, CausalContextModel.files)
    model_type = model_type_of(path)
    if not issubclass(context_model_class(model_type), CausalContextModel):
        raise UserError(f"--context-model must be {EXPECTED}, {name!r} is a {model_type}")
    CausalContextModel.load(path, "cpu")


def recorded_speed(record: Path, name: str, chunks: str) -> float:
    """Return the sentences a second that a language model reads: as recorded, so that a resumed run has the same
    steps, or else measured for a few seconds on sentences of the corpus."""
    if not record.exists():
        write_json(record, seal({"sentences_per_second": round(_measure(name, chunks), 2)}))
    return float(read_sealed(record, "remove it and run the same command again")["sentences_per_second"])


def _measure(name: str, chunks: str) -> float:
    model = CausalContextModel.load(fetch_model(name, EXPECTED, CausalContextModel.files), default_device())
    table = pq.read_table(min(Path(chunks).glob(SHARD_PATTERN)), columns=["sentences"])
    sentences = [sentence for row in table["sentences"].to_pylist() for sentence in row]
    # The harvest leaves out long sentences, which are few and slow.
    sentences = [sentence for sentence in sentences if len(sentence) <= MAX_LETTERS] or ["It rained all day."]
    np.random.default_rng(0).shuffle(sentences)
    model.vectors(sentences[:2])  # whatever is done once
    read, start = 0, time.monotonic()
    while time.monotonic() - start < MEASURED_SECONDS:
        model.vectors([sentences[place % len(sentences)] for place in range(read, read + BLOCK)])
        read += BLOCK
    return read / (time.monotonic() - start)
