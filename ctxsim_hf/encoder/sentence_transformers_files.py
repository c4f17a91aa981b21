"""What sentence-transformers reads beside a model and its tokenizer, so that it opens our folders with no flag.

The spellings are the older ones, which every release reads.
"""

import json
import os
from pathlib import Path
from typing import Any

from transformers import RobertaConfig


def max_tokens(config: RobertaConfig) -> int:
    """Tokens an input may have, `<s>` and `</s>` included: RoBERTa's positions start after the pad id."""
    return int(config.max_position_embeddings - config.pad_token_id - 1)


def write_sentence_transformer_files(folder: str | os.PathLike[str], config: RobertaConfig) -> None:
    """For `SentenceTransformer`: mean pooling, cosine."""
    transformer = {"model_args": {"add_pooling_layer": False}}  # else it makes a random one, and says so
    _write(Path(folder), config, transformer, ("Transformer", "Pooling"), {"similarity_fn_name": "cosine"})
    pooling = {"word_embedding_dimension": config.hidden_size, "pooling_mode_mean_tokens": True}
    _write_json(Path(folder) / "1_Pooling" / "config.json", pooling)


def write_cross_encoder_files(folder: str | os.PathLike[str], config: RobertaConfig) -> None:
    """For `CrossEncoder`."""
    transformer = {"transformer_task": "sequence-classification"}
    _write(Path(folder), config, transformer, ("Transformer",), {"model_type": "CrossEncoder"})


def _write(
    folder: Path, config: RobertaConfig, transformer: dict[str, Any], modules: tuple[str, ...], whole: dict[str, Any]
) -> None:
    limits = {"max_seq_length": max_tokens(config), "do_lower_case": False}
    _write_json(folder / "sentence_bert_config.json", limits | transformer)
    rows = [
        {"idx": i, "name": str(i), "path": f"{i}_{name}" if i else "", "type": f"sentence_transformers.models.{name}"}
        for i, name in enumerate(modules)
    ]
    _write_json(folder / "modules.json", rows)
    # A sentence-transformers that saves our model within its own has written this one before, perhaps with prompts;
    # the others it writes afterwards.
    if not (folder / "config_sentence_transformers.json").exists():
        _write_json(folder / "config_sentence_transformers.json", {"prompts": {}} | whole)


def _write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n", "utf-8")
