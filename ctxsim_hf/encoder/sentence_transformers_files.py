"""The files of sentence-transformers beside a model and its tokenizer. They are written so that it opens our folders,
and read so that we compute the same vectors from its folders.

They are written in the older format, which every release reads.
"""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transformers import PreTrainedConfig

from ctxsim_hf.encoder.hub_files import optional_file
from ctxsim_hf.encoder.part_encoder import NO_LIMIT
from ctxsim_hf.encoder.plain_encoder import encoder_class, max_tokens, takes_pooling_layer
from ctxsim_hf.encoder.static_encoder import StaticConfig
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import read_json

STATIC = "StaticEmbedding"
READ: tuple[list[str], ...] = (  # modules that we support
    [],
    ["Transformer"],
    ["Transformer", "Pooling"],
    ["Transformer", "Pooling", "Normalize"],
    [STATIC],
    [STATIC, "Normalize"],
)
POOLING_FLAGS = {
    "mean": "pooling_mode_mean_tokens",
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
}


@dataclass(frozen=True)
class Pooling:
    """How the states of tokens become the vector of a sentence: their mean, the first one (cls), or the
    largest of each dimension (max)."""

    mode: str = "mean"
    normalize: bool = False  # whether vectors are scaled to length 1


@dataclass(frozen=True)
class TextSettings:
    """What sentence-transformers does to a sentence before an encoder reads it."""

    max_tokens: int | None = None  # special tokens included; None takes as many as the encoder reads
    prompts: dict[str, str] = field(default_factory=dict)
    default_prompt_name: str | None = None

    @property
    def prompt(self) -> str:
        """The text before every sentence."""
        return self.prompts.get(self.default_prompt_name or "", "")


def read_text_settings(surrogate: str | os.PathLike[str], **hub: Any) -> TextSettings:
    """Return the settings in a folder or a repository of the Hub."""
    # Recent releases keep the length with the tokenizer; a huge number there stands for no limit.
    longest = _read(surrogate, "sentence_bert_config.json", hub).get("max_seq_length")
    longest = longest or _read(surrogate, "tokenizer_config.json", hub).get("model_max_length")
    settings = _read(surrogate, "config_sentence_transformers.json", hub)
    prompts = {name: prompt for name, prompt in (settings.get("prompts") or {}).items() if prompt}
    return TextSettings(
        longest if longest and longest < NO_LIMIT else None, prompts, settings.get("default_prompt_name")
    )


def read_pooling(surrogate: str | os.PathLike[str], **hub: Any) -> Pooling:
    """Return the pooling in a folder or a repository of the Hub, or the mean if there is none; refuse modules that we
    do not support."""
    kinds, pooling = [], Pooling().mode
    for module in _read(surrogate, "modules.json", hub) or ():
        kind = module["type"].rsplit(".", 1)[-1]
        if kind == "Pooling":
            settings = _read(surrogate, f"{module['path']}/config.json", hub)
            modes = _pooling_modes(settings)
            if settings.get("include_prompt") is False:
                modes.append("include_prompt=false")
            kind, pooling = (kind, modes[0]) if len(modes) == 1 and modes[0] in POOLING_FLAGS else (str(modes), "")
        kinds.append(kind)
    if kinds not in READ:
        raise UserError(
            f"expected an encoder with mean, cls or max pooling, and perhaps Normalize, in {str(surrogate)!r}, "
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
    path = optional_file(surrogate, name, hub)
    return {} if path is None else read_json(path)


def write_sentence_transformer_files(
    folder: str | os.PathLike[str], config: PreTrainedConfig, pooling: Pooling, text: TextSettings
) -> None:
    """Write the files of `SentenceTransformer`."""
    whole: dict[str, Any] = {"similarity_fn_name": "cosine"}
    if text.prompts:
        whole |= {"prompts": text.prompts, "default_prompt_name": text.default_prompt_name}
    end = ("Normalize",) if pooling.normalize else ()
    if config.model_type == StaticConfig.model_type:
        _write_modules(Path(folder), (STATIC, *end), whole)
        return
    # Otherwise it makes a pooling layer with random weights, and warns.
    transformer = {"model_args": {"add_pooling_layer": False}} if takes_pooling_layer(encoder_class(config)) else {}
    _write_limits(Path(folder), config, text.max_tokens, transformer)
    _write_modules(Path(folder), ("Transformer", "Pooling", *end), whole)
    settings = {"word_embedding_dimension": config.hidden_size, POOLING_FLAGS[pooling.mode]: True}
    _write_json(Path(folder) / "1_Pooling" / "config.json", settings)


def write_cross_encoder_files(folder: str | os.PathLike[str], config: PreTrainedConfig) -> None:
    """Write the files of `CrossEncoder`."""
    _write_limits(Path(folder), config, None, {"transformer_task": "sequence-classification"})
    _write_modules(Path(folder), ("Transformer",), {"model_type": "CrossEncoder"})


def _write_limits(folder: Path, config: PreTrainedConfig, wanted: int | None, transformer: dict[str, Any]) -> None:
    """Write how the encoder reads text; `wanted` is the maximum number of tokens, or None for the encoder's own."""
    known = [limit for limit in (max_tokens(config), wanted) if limit is not None]
    limits = {"max_seq_length": min(known)} if known else {}
    _write_json(folder / "sentence_bert_config.json", limits | {"do_lower_case": False} | transformer)


def _write_modules(folder: Path, modules: tuple[str, ...], whole: dict[str, Any]) -> None:
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
