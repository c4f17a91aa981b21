"""A surrogate's folder, or its id on the Hub -> where its files are, and a fingerprint of what shapes a vector."""

import json
from pathlib import Path
from typing import Any

import xxhash
from huggingface_hub import snapshot_download

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.stage import digest_file

FILES = ("*.json", "*.safetensors", "*.txt", "*.onnx")  # to fetch from the Hub
ONNX_SETTINGS = "onnx_surrogate.json"  # whoever has this was made by `ctxsim export`


def find_surrogate(surrogate: str | Path) -> Path:
    if Path(surrogate).is_dir():
        return Path(surrogate)
    try:
        return Path(snapshot_download(str(surrogate), allow_patterns=list(FILES)))
    except (OSError, ValueError) as error:  # every error of the Hub's client is one of these
        raise UserError(
            f"expected the folder of a surrogate or its id on the Hub, but {str(surrogate)!r} is no folder here and "
            f"could not be fetched ({type(error).__name__})"
        ) from error


def fingerprint(folder: Path) -> str:
    """Return one digest of the weights, the tokenizer and a pooling other than the mean. An export of unchanged
    precision has that of its model, since their vectors are equal."""
    if vectors_of := read_json(folder / ONNX_SETTINGS).get("vectors_of"):
        return str(vectors_of)
    shapers = [path for pattern in ("tokenizer.json", "*.safetensors", "*.onnx") for path in folder.glob(pattern)]
    digests = [digest_file(path) for path in sorted(shapers)]
    pooling = read_json(folder / "1_Pooling" / "config.json")
    if pooling.get("pooling_mode") == "cls" or pooling.get("pooling_mode_cls_token"):
        digests.append("cls")
    return xxhash.xxh3_128_hexdigest("".join(digests).encode())


def read_json(path: Path) -> Any:
    """What a file says, nothing if there is none."""
    try:
        return json.loads(path.read_text("utf-8")) if path.exists() else {}
    except ValueError as error:
        raise UserError(f"{str(path)!r} is damaged: {error}") from error
