"""`model_type` -> the class of a context model.

Built-in classes are in a table. Other packages add theirs with [`register_context_model`], or, so that every process
finds them, with an entry point of the group `ctxsim_hf.context_models` whose name is the model type:

    [options.entry_points]
    ctxsim_hf.context_models =
        my_model_type = my_package.my_module:MyContextModel
"""

import importlib
import json
import shutil
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import xxhash

from ctxsim_hf.context_models.base import ContextModel
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.fetch import GGUF_SUFFIX
from ctxsim_hf.runtime.files import digest_file
from ctxsim_hf.runtime.pretrained import explain_opening
from ctxsim_hf.runtime.record import STAGE_FILE, check_if_stage, describe_stage

GROUP = "ctxsim_hf.context_models"
GGUF = "gguf"  # the type of a language model in one file that says by itself what it is, and of a folder with one
_BUILT_IN = {
    "ctxsim_discriminator": "ctxsim_hf.context_models.discriminator.scoring:DiscriminatorContextModel",
    "ctxsim_light_generator": "ctxsim_hf.context_models.light.scoring:LightContextModel",
    "ctxsim_generator": "ctxsim_hf.context_models.seq2seq.scoring:Seq2SeqContextModel",
    **dict.fromkeys(
        ("bart", "t5", "mt5", "umt5"),
        "ctxsim_hf.context_models.pretrained_seq2seq.scoring:PretrainedSeq2SeqContextModel",
    ),
}
_registered: dict[str, type[ContextModel]] = {}


def register_context_model(model_type: str, model_class: type[ContextModel]) -> None:
    """Open folders whose config.json has this `model_type` as this class, in this process and its workers."""
    if model_type in _BUILT_IN:
        raise UserError(f"the model type {model_type!r} is already used by ctxsim_hf; choose another")
    _registered[model_type] = model_class


def registered_context_models() -> dict[str, type[ContextModel]]:
    """Return the classes registered in this process, to register them in another."""
    return dict(_registered)


def context_model_class(model_type: str) -> type[ContextModel]:
    """Return the class for a model type: registered, built in, or from an entry point."""
    if model_type in _registered:
        return _registered[model_type]
    if model_type in _BUILT_IN:
        module, name = _BUILT_IN[model_type].split(":")
        found: type[ContextModel] = getattr(importlib.import_module(module), name)
        return found
    for entry_point in entry_points(group=GROUP, name=model_type):
        loaded: type[ContextModel] = entry_point.load()
        return loaded
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    if model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES or model_type == GGUF:
        from ctxsim_hf.context_models.causal.scoring import CausalContextModel

        return CausalContextModel
    known = sorted({*_BUILT_IN, *_registered, *(entry_point.name for entry_point in entry_points(group=GROUP))})
    raise UserError(
        f"no context model is known for the model type {model_type!r}; expected one of {', '.join(known)}, or one "
        "that was registered with register_context_model()"
    )


def model_type_of(folder: Path) -> str:
    """Return the model type in the config.json of a folder."""
    if folder.suffix == GGUF_SUFFIX and folder.is_file():
        return GGUF
    path = folder / "config.json"
    if not path.exists() and any(folder.glob("*.gguf")):
        return GGUF
    try:
        return str(json.loads(path.read_text("utf-8"))["model_type"])
    except FileNotFoundError:
        raise UserError(f"expected a context model in {str(folder)!r}, but it has no config.json") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"expected a config.json with a model_type in {str(folder)!r}: {error}") from None


def load_context_model(folder: Path, device: str = "cpu") -> ContextModel:
    """Open the context model in a folder or a GGUF file, whatever its kind; refuse a damaged folder."""
    check_if_stage(folder)
    with explain_opening("a context model", folder):
        return context_model_class(model_type_of(folder)).load(folder, device)


def copy_context_model(folder: Path, target: Path) -> None:
    """Copy the files of a model to another folder, without those that only its training needed."""
    target.mkdir(parents=True, exist_ok=True)
    for path in _files(folder):
        shutil.copyfile(path, target / path.name)


def describe_context_model(folder: Path) -> dict[str, Any]:
    """Describe a model for the stage.json of an index: its type, and its stage or the digest of its files."""
    model_type = model_type_of(folder)
    if (folder / STAGE_FILE).exists():
        return {"model_type": model_type, **describe_stage(folder)}
    files = {path.name: digest_file(path) for path in _files(folder)}
    digest = xxhash.xxh3_128_hexdigest(json.dumps(files, sort_keys=True).encode())
    return {"model_type": model_type, "xxh3_128": digest}


def _files(folder: Path) -> list[Path]:
    """Return the files of a model; a GGUF file is its only one."""
    if folder.is_file():
        return [folder]
    return [path for pattern in context_model_class(model_type_of(folder)).files for path in folder.glob(pattern)]
