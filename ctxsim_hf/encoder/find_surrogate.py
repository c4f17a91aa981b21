"""A surrogate's folder, or its id on the Hub -> where its files are, and a fingerprint of what shapes a vector."""

from pathlib import Path

import xxhash

from ctxsim_hf.runtime.fetch import fetch_folder
from ctxsim_hf.runtime.files import digest_file, read_json

FILES = ("*.json", "*.safetensors", "*.txt", "*.onnx")  # to fetch from the Hub
ONNX_SETTINGS = "onnx_surrogate.json"  # whoever has this was made by `ctxsim export`


def find_surrogate(surrogate: str | Path) -> Path:
    return fetch_folder(surrogate, "the folder of a surrogate", allow_patterns=FILES)


def fingerprint(folder: Path) -> str:
    """One digest of the weights and the tokenizer. An export of unchanged precision has that of its model, since
    their vectors are equal."""
    if vectors_of := read_json(folder / ONNX_SETTINGS).get("vectors_of"):
        return str(vectors_of)
    shapers = [path for pattern in ("tokenizer.json", "*.safetensors", "*.onnx") for path in folder.glob(pattern)]
    digests = [digest_file(path) for path in sorted(shapers)]
    return xxhash.xxh3_128_hexdigest("".join(digests).encode())
