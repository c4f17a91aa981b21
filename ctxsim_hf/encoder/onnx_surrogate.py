"""A folder made by `ctxsim export` -> an ONNX surrogate, which runs with onnxruntime and tokenizers, without torch."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from ctxsim_hf.encoder.find_surrogate import ONNX_SETTINGS
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import read_json

TOKENS_PER_BATCH = 1024  # as for torch on a CPU: small batches fit its caches and have little padding


class PlainTokenizer:
    """A tokenizer.json with the interface of the tokenizers of transformers."""

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_file(str(path))
        self.tokenizer.no_padding()  # the encoder pads and truncates, and counts what it truncates
        self.tokenizer.no_truncation()
        self.tokenizer.encode_special_tokens = settings["split_special_tokens"]
        self.pad_token_id: int = settings["pad_id"]

    def __call__(self, sentences: list[str], **options: Any) -> dict[str, list[list[int]]]:
        rows = self.tokenizer.encode_batch_fast(sentences, add_special_tokens=options["add_special_tokens"])
        return {"input_ids": [row.ids for row in rows]}


class OnnxSurrogate:
    """A model.onnx as a `VectorModel`. Its graph scales vectors to length 1."""

    def __init__(self, path: Path, vector_size: int, num_threads: int | None = None) -> None:
        onnxruntime = import_onnxruntime()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = num_threads or default_threads()
        # With int8 products, the fused kernel of addition and normalisation takes four times as long as the two
        # separate ones.
        self.session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"], disabled_optimizers=["SkipLayerNormFusion"]
        )
        self.vector_size, self.tokens_per_batch = vector_size, TOKENS_PER_BATCH

    def __call__(self, input_ids: np.ndarray, attention_mask: np.ndarray) -> np.ndarray:
        vectors: np.ndarray
        (vectors,) = self.session.run(None, {"input_ids": input_ids, "attention_mask": attention_mask})
        return vectors


def open_onnx(folder: Path, num_threads: int | None = None) -> tuple[OnnxSurrogate, PlainTokenizer, int]:
    """Open the model and its tokenizer, and return them with the maximum number of tokens of a sentence. `num_threads`
    None takes the default."""
    for name in ("model.onnx", "tokenizer.json"):
        if not (folder / name).exists():
            raise UserError(f"expected an ONNX surrogate and its tokenizer in {str(folder)!r}, but it has no {name}")
    settings = read_json(folder / ONNX_SETTINGS)
    tokenizer = PlainTokenizer(folder / "tokenizer.json", settings)
    model = OnnxSurrogate(folder / "model.onnx", settings["vector_size"], num_threads)
    return model, tokenizer, settings["max_tokens"]


def import_onnxruntime() -> Any:
    """Import onnxruntime, or say how to install it."""
    try:
        import onnxruntime
    except ImportError as error:
        raise UserError("ONNX surrogates need onnxruntime: pip install 'ctxsim-hf[onnx]'") from error
    return onnxruntime


def default_threads() -> int:
    """Return OMP_NUM_THREADS, which torch respects and onnxruntime ignores, or 0, which lets onnxruntime choose."""
    number = os.environ.get("OMP_NUM_THREADS", "")
    return int(number) if number.isdecimal() else 0
