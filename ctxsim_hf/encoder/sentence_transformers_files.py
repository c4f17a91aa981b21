"""The files of sentence-transformers beside a model and its tokenizer. They are written so that it opens our folders,
and read so that we compute the same vectors from its folders.

They are written in the older format, which every release reads.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import PreTrainedConfig
from transformers.utils import cached_file

from ctxsim_hf.encoder.find_surrogate import read_json
from ctxsim_hf.encoder.plain_encoder import encoder_class, max_tokens, takes_pooling_layer
from ctxsim_hf.runtime.errors import UserError

POOLING_FLAGS = {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token"}


@dataclass(frozen=True)
class Pooling:
    """How the states of tokens become the vector of a sentence: their mean, or the first one (cls)."""

    mode: str = "mean"
    normalize: bool = False  # whether vectors are scaled to length 1


def read_pooling(surrogate: str | os.PathLike[str], **hub: Any) -> Pooling:
    """Return the pooling in a folder or a repository of the Hub, or the mean if there is none; refuse modules that we
    do not support."""
    kinds, pooling = [], Pooling().mode
    for module in _read(surrogate, "modules.json", hub) or ():
        kind = module["type"].rsplit(".", 1)[-1]
        if kind == "Pooling":
            settings = _read(surrogate, f"{module['path']}/config.json", hub)
            modes = _pooling_modes(settings)
            kind, pooling = (kind, modes[0]) if len(modes) == 1 and modes[0] in POOLING_FLAGS else (str(modes), "")
        kinds.append(kind)
    if kinds not in ([], ["Transformer"], ["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise UserError(
            f"expected an encoder with mean or cls pooling, and perhaps Normalize, in {str(surrogate)!r}, "
            f"found {', '.join(kinds)}; open it with sentence-transformers instead"
        )
    return Pooling(pooling, "Normalize" in kinds)


def _pooling_modes(settings: dict[str, Any]) -> list[str]:
    """Return the modes, in the current format (`pooling_mode`) or in the older one, a flag for each."""
    if "pooling_mode" in settings:
        modes = settings["pooling_mode"]
        return [modes] if isinstance(modes, str) else list(modes)
    flags = [name for name, value in settings.items() if name.startswith("pooling_mode_") and value]
    named = {flag: mode for mode, flag in POOLING_FLAGS.items()}
    return [named.get(flag, flag) for flag in flags] or ["mean"]


def _read(surrogate: str | os.PathLike[str], name: str, hub: dict[str, Any]) -> Any:
    quietly = {"_raise_exceptions_for_missing_entries": False, "_raise_exceptions_for_connection_errors": False}
    path = cached_file(surrogate, name, **quietly, **hub)
    return {} if path is None else read_json(Path(path))


def write_sentence_transformer_files(
    folder: str | os.PathLike[str], config: PreTrainedConfig, pooling: Pooling
) -> None:
    """Write the files of `SentenceTransformer`."""
    # Otherwise it makes a pooling layer with random weights, and warns.
    transformer = {"model_args": {"add_pooling_layer": False}} if takes_pooling_layer(encoder_class(config)) else {}
    modules = ("Transformer", "Pooling", "Normalize") if pooling.normalize else ("Transformer", "Pooling")
    _write(Path(folder), config, transformer, modules, {"similarity_fn_name": "cosine"})
    settings = {"word_embedding_dimension": config.hidden_size, POOLING_FLAGS[pooling.mode]: True}
    _write_json(Path(folder) / "1_Pooling" / "config.json", settings)


def write_cross_encoder_files(folder: str | os.PathLike[str], config: PreTrainedConfig) -> None:
    """Write the files of `CrossEncoder`."""
    transformer = {"transformer_task": "sequence-classification"}
    _write(Path(folder), config, transformer, ("Transformer",), {"model_type": "CrossEncoder"})


def _write(
    folder: Path,
    config: PreTrainedConfig,
    transformer: dict[str, Any],
    modules: tuple[str, ...],
    whole: dict[str, Any],
) -> None:
    limits = {} if (longest := max_tokens(config)) is None else {"max_seq_length": longest}
    _write_json(folder / "sentence_bert_config.json", limits | {"do_lower_case": False} | transformer)
    rows = [
        {"idx": i, "name": str(i), "path": f"{i}_{name}" if i else "", "type": f"sentence_transformers.models.{name}"}
        for i, name in enumerate(modules)
    ]
    _write_json(folder / "modules.json", rows)
    # When sentence-transformers saves our model inside its own, it has already written this file, perhaps with
    # prompts; it writes the others afterwards.
    if not (folder / "config_sentence_transformers.json").exists():
        _write_json(folder / "config_sentence_transformers.json", {"prompts": {}} | whole)


def _write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n", "utf-8")
