"""The folder of a surrogate, or its id on the Hub -> its local folder, and a fingerprint of its weights."""

from pathlib import Path
from typing import Any

import xxhash

from ctxsim_hf.runtime.fetch import fetch_folder
from ctxsim_hf.runtime.files import digest_file, read_json

FILES = ("*.json", "*.safetensors", "*.txt", "*.onnx")  # to download from the Hub
BIN = "pytorch_model*.bin"
WEIGHTS = ("tokenizer.json", "*.safetensors", BIN, "*.onnx")
START_FILES = ("*.json", "*.safetensors", "*.txt")
ONNX_SETTINGS = "onnx_surrogate.json"  # marks a folder made by `ctxsim export`


def find_surrogate(surrogate: str | Path) -> Path:
    """Return the local folder of a surrogate, downloading it if necessary."""
    return fetch_folder(surrogate, "the folder of a surrogate", allow_patterns=FILES)


def find_start(encoder: str | Path) -> Path:
    """Return the local folder of an encoder to train further, downloading it if necessary. Old repositories on the Hub
    have weights in .bin files alone."""
    expected = "an encoder to start from"
    folder = fetch_folder(encoder, expected, allow_patterns=START_FILES)
    if any(folder.glob("*.safetensors")):
        return folder
    return fetch_folder(encoder, expected, allow_patterns=(*START_FILES, BIN))


def is_static_modules(modules: Any) -> bool:
    """Return whether the content of modules.json is that of a static model, a table of token vectors."""
    return bool(modules) and modules[0]["type"].rsplit(".", 1)[-1] == "StaticEmbedding"


def is_static(folder: Path) -> bool:
    """Return whether a folder holds a static model."""
    return is_static_modules(read_json(folder / "modules.json"))


def default_prompt(folder: Path) -> str:
    """Return the text that sentence-transformers puts before every sentence, mostly none."""
    settings = read_json(folder / "config_sentence_transformers.json")
    return str((settings.get("prompts") or {}).get(settings.get("default_prompt_name")) or "")


def fingerprint(folder: Path) -> str:
    """Return one digest of the weights, the tokenizer, a pooling other than the mean, and the prompt. An ONNX export
    in full precision has the fingerprint of its model, since their vectors are equal."""
    if vectors_of := read_json(folder / ONNX_SETTINGS).get("vectors_of"):
        return str(vectors_of)
    files = [path for pattern in WEIGHTS for path in folder.glob(pattern)]
    digests = [digest_file(path) for path in sorted(files)]
    pooling = read_json(folder / "1_Pooling" / "config.json")
    for mode, flag in (("cls", "pooling_mode_cls_token"), ("max", "pooling_mode_max_tokens")):
        if pooling.get("pooling_mode") == mode or pooling.get(flag):
            digests.append(mode)
    if prompt := default_prompt(folder):
        digests.append(prompt)
    return xxhash.xxh3_128_hexdigest("".join(digests).encode())
