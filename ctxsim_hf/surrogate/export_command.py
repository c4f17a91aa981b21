"""Export a surrogate to a folder that onnxruntime and tokenizers run without torch: `ctxsim export`.

Every export is compared with the model in torch before the stage is finished.
"""

import importlib.util
import random
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from tokenizers import Tokenizer
from transformers.hf_argparser import HfArg

from ctxsim_hf.encoder.find_surrogate import ONNX_SETTINGS, default_prompt, find_surrogate, fingerprint, is_static
from ctxsim_hf.encoder.sentence_encoder import SentenceEncoder
from ctxsim_hf.encoder.surrogate_folder import SurrogateFolder
from ctxsim_hf.encoder.thresholds import THRESHOLDS_FILE
from ctxsim_hf.encoder.torch_surrogate import TorchSurrogate
from ctxsim_hf.runtime.arguments import StageArguments
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import write_json
from ctxsim_hf.runtime.record import read_counts
from ctxsim_hf.runtime.stage import Stage
from ctxsim_hf.runtime.validation import OneOf
from ctxsim_hf.surrogate.onnx_card import CARD, PRECISIONS

COMMAND = "export"
FORMATS = ("onnx",)
QUANTIZATIONS = tuple(precision for precision in PRECISIONS if precision is not None)
MAX_DIFFERENCE = 1e-5  # of any number of a vector, in 32 bits
MIN_COSINE = {None: 0.99999, "int8": 0.98}  # of a vector with that of the model in torch
COMPARED_SENTENCES = 200


@dataclass(kw_only=True)
class ExportArguments(StageArguments):
    """The arguments of `ctxsim export`."""

    surrogate: str = HfArg(help="Folder of a surrogate, or its id on the Hub.")
    format: Annotated[str, OneOf(FORMATS)] = HfArg(default="onnx", help=f"One of {', '.join(FORMATS)}.")
    quantize: Annotated[str, OneOf(QUANTIZATIONS)] | None = HfArg(
        default=None, help="int8: about twice as fast on a CPU, nearly the same vectors."
    )

    unrecorded: ClassVar[tuple[str, ...]] = (*StageArguments.unrecorded, "surrogate")


def run(arguments: ExportArguments) -> dict[str, Any]:
    """Run the stage; return the counts that stage.json records."""
    for package in ("onnx", "onnxruntime"):
        if importlib.util.find_spec(package) is None:
            raise UserError(f"export needs {package}: pip install 'ctxsim-hf[onnx]'")
    path = find_surrogate(arguments.surrogate)
    if (path / ONNX_SETTINGS).exists():
        raise UserError(f"{str(path)!r} is an export already; expected the surrogate it was made from")
    if is_static(path):
        raise UserError(f"{str(path)!r} is a static surrogate, which needs no export: it runs without torch as it is")
    folder = SurrogateFolder.open(path)
    source = fingerprint(path)
    packages = ("onnx", "onnxruntime", "torch", "transformers")
    with Stage(COMMAND, arguments, {"surrogate": source}, packages) as stage:
        if not stage.finished:
            _export(stage, folder, source, arguments.quantize)
    return read_counts(arguments.output, COMMAND)


def _export(stage: Stage, folder: SurrogateFolder, source: str, precision: str | None) -> None:
    from ctxsim_hf.surrogate.onnx_graph import quantize, write_onnx

    model = folder.load_model().cpu().float()
    with stage.writing("model.onnx") as path:
        write_onnx(model, path)
        if precision is not None:
            whole = path.replace(path.with_name("whole.onnx"))
            quantize(whole, path)
            whole.unlink()
    _write_tokenizer(folder, stage.folder / "tokenizer.json")
    tokenizer = folder.tokenizer
    settings = {
        "format": "onnx",
        "quantize": precision,
        "vector_size": model.config.hidden_size,
        "max_tokens": folder.max_tokens,
        "pad_id": tokenizer.pad_token_id,
        "split_special_tokens": bool(tokenizer.split_special_tokens),  # tokenizer.json cannot hold it
        "vectors_of": source if precision is None else None,
    }
    prompt = default_prompt(folder.path)
    write_json(stage.folder / ONNX_SETTINGS, settings | ({"prompt": prompt} if prompt else {}))
    if (folder.path / THRESHOLDS_FILE).exists():  # what a similarity means, which an export changes little
        shutil.copyfile(folder.path / THRESHOLDS_FILE, stage.folder / THRESHOLDS_FILE)
    exported = SentenceEncoder.from_pretrained(stage.folder)
    try:
        own = SentenceEncoder(TorchSurrogate(model), tokenizer, folder.max_tokens, prompt=prompt)
        found = compare(own, exported, precision)
    except UserError:
        (stage.folder / "model.onnx").unlink()
        raise
    about = {"precision": PRECISIONS[precision], **settings, **found}
    (stage.folder / "README.md").write_text(CARD.format(**about), "utf-8")
    stage.finish({"bytes": (stage.folder / "model.onnx").stat().st_size, **found})


def _write_tokenizer(folder: SurrogateFolder, path: Path) -> None:
    """Write the tokenizer with truncation and padding enabled, which transformers does by itself."""
    tokenizer = Tokenizer.from_str(folder.tokenizer.backend_tokenizer.to_str())
    tokenizer.enable_truncation(folder.max_tokens)
    tokenizer.enable_padding(pad_id=folder.tokenizer.pad_token_id, pad_token=folder.tokenizer.pad_token)
    tokenizer.save(str(path))


def compare(torch_encoder: SentenceEncoder, exported: SentenceEncoder, precision: str | None) -> dict[str, Any]:
    """Compare the vectors of an export with those of its model; refuse it if they differ too much."""
    sentences = _made_up_sentences(torch_encoder)
    wanted = np.asarray(torch_encoder.encode(sentences, normalize_embeddings=True))
    got = np.asarray(exported.encode(sentences, normalize_embeddings=True))
    largest = float(np.abs(wanted - got).max())
    least = float((wanted * got).sum(1).min())
    far = precision is None and largest > MAX_DIFFERENCE
    if far or not least >= MIN_COSINE[precision]:
        bounds = f"at most {MAX_DIFFERENCE:g} and " if precision is None else ""
        raise UserError(
            f"the export was not kept: its vectors differ from the model's by up to {largest:.2g}, and the lowest "
            f"cosine is {least:.5f}; expected {bounds}at least {MIN_COSINE[precision]}"
        )
    return {"sentences": len(sentences), "largest_difference": largest, "least_cosine": least}


def _made_up_sentences(encoder: SentenceEncoder) -> list[str]:
    """Make up sentences of known tokens, special ones too, from empty to as long as the model reads."""
    draw, tokenizer = random.Random(0), encoder.tokenizer
    words = [token.replace("▁", " ") for token in sorted(tokenizer.get_vocab())]  # type: ignore[attr-defined]
    lengths = [draw.randint(0, encoder.max_tokens) for _ in range(4 * COMPARED_SENTENCES)]
    sentences = ["", *("".join(draw.choices(words, k=length)) for length in lengths)]
    ids = tokenizer(sentences, add_special_tokens=True)["input_ids"]
    fitting = [text for text, row in zip(sentences, ids, strict=True) if 0 < len(row) <= encoder.max_tokens]
    return fitting[:COMPARED_SENTENCES]
