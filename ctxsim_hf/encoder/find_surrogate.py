"""The folder of a surrogate, or its id on the Hub -> its local folder, and a fingerprint of its weights."""

from pathlib import Path

import xxhash

from ctxsim_hf.runtime.fetch import fetch_folder
from ctxsim_hf.runtime.files import digest_file, read_json

FILES = ("*.json", "*.safetensors", "*.txt", "*.onnx")  # to download from the Hub
ONNX_SETTINGS = "onnx_surrogate.json"  # marks a folder made by `ctxsim export`


def find_surrogate(surrogate: str | Path) -> Path:
    """Return the local folder of a surrogate, downloading it if necessary."""
    return fetch_folder(surrogate, "the folder of a surrogate", allow_patterns=FILES)


def fingerprint(folder: Path) -> str:
    """Return one digest of the weights, the tokenizer and a pooling other than the mean. An ONNX export in
    full precision has the fingerprint of its model, since their vectors are equal."""
    if vectors_of := read_json(folder / ONNX_SETTINGS).get("vectors_of"):
        return str(vectors_of)
    files = [path for pattern in ("tokenizer.json", "*.safetensors", "*.onnx") for path in folder.glob(pattern)]
    digests = [digest_file(path) for path in sorted(files)]
    pooling = read_json(folder / "1_Pooling" / "config.json")
    if pooling.get("pooling_mode") == "cls" or pooling.get("pooling_mode_cls_token"):
        digests.append("cls")
    return xxhash.xxh3_128_hexdigest("".join(digests).encode())
