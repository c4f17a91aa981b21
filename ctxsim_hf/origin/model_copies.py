"""Context models -> their copies in an origin, a tokenizer for the index, and the first settings of the origin."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import TokenizersBackend

from ctxsim_hf.context_models.base import ContextModel
from ctxsim_hf.context_models.causal.scoring import CausalContextModel
from ctxsim_hf.context_models.registry import copy_context_model, load_context_model, model_type_of
from ctxsim_hf.context_models.score_weights import ScoreWeights
from ctxsim_hf.origin.cloze_signal import ClozeModel
from ctxsim_hf.origin.fit_score import answered_terms
from ctxsim_hf.origin.layout import CONTEXT_MODELS, TOKENIZER, Layout
from ctxsim_hf.origin.settings import SETTINGS_FILE, OriginSettings
from ctxsim_hf.origin.signals import CLOZE, CONTEXTS
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import write_json
from ctxsim_hf.text.fast_tokenizer import TOKENIZER_FILES, copy_tokenizer

# Weights are in standard deviations over unrelated pairs, which differ little in their words: so little is enough.
WORDS_BESIDE_CLOZE = 0.2


def copy_models(
    folder: Path,
    models: list[Path],
    tokenizer: str | None,
    cloze_only: bool = False,
    bridges: list[str] | None = None,
) -> None:
    """Copy a tokenizer and the models, which must answer different terms; write layout and settings.

    Args:
        folder (`Path`): The origin.
        models (`list[Path]`): Folders or GGUF files.
        tokenizer (`str`, *optional*): Folder with the tokenizer. None takes that of the first model that has one.
        cloze_only (`bool`): Whether causal language models answer no term, whatever their own settings say.
        bridges (`list[str]`, *optional*): Bridges of causal language models. None leaves those of their own settings.
    """
    names = _names(models)
    opened = {name: load_context_model(model) for name, model in names.items()}
    changed: dict[str, CausalContextModel] = {}
    if cloze_only:
        changed |= _change(opened, "--cloze-only", terms=[])
    if bridges is not None:
        changed |= _change(opened, "--bridges", bridges=bridges)
    answered = answered_terms(opened)
    _write_tokenizer(folder / TOKENIZER, [Path(tokenizer)] if tokenizer else models, opened)
    for name, model in names.items():
        copy_context_model(model, folder / CONTEXT_MODELS / name)
    for name, language_model in changed.items():
        language_model.settings.save(folder / CONTEXT_MODELS / name)
    Layout(list(names), max(model.width for model in opened.values())).save(folder)
    # Retrieved contexts take a slow model seconds a pair.
    by_words = any(isinstance(model, ClozeModel) and model.is_slow for model in opened.values())
    signals = {CLOZE: 1.0, "words": WORDS_BESIDE_CLOZE} if by_words else {CONTEXTS: 1.0}
    weights = ScoreWeights.default_for(answered) if answered else ScoreWeights()
    write_json(folder / SETTINGS_FILE, OriginSettings(signals=signals, weights=weights).to_json())


def _change(models: Mapping[str, ContextModel], flag: str, **settings: Any) -> dict[str, CausalContextModel]:
    """Change settings of the causal language models as a flag asks, and return these models."""
    found = {name: model for name, model in models.items() if isinstance(model, CausalContextModel)}
    if not found:
        raise UserError(f"{flag} is for a causal language model, but --context-model names none")
    for model in found.values():
        model.change(**settings)
    return found


def _write_tokenizer(target: Path, folders: list[Path], models: Mapping[str, ContextModel]) -> None:
    """Copy the first tokenizer that is in a folder, or else save the first that a model has, as from a GGUF file."""
    if found := [folder for folder in folders if (folder / TOKENIZER_FILES[0]).exists()]:
        return copy_tokenizer(found[0], target)
    for model in models.values():
        if isinstance(own := getattr(model, "tokenizer", None), TokenizersBackend):
            own.save_pretrained(target)
            return None
    raise UserError("none of the context models has a fast tokenizer for the index; name one with --tokenizer")


def _names(models: list[Path]) -> dict[str, Path]:
    """Name the models within an origin by their type; several of one type are numbered."""
    named: dict[str, Path] = {}
    for model in models:
        base = model_type_of(model).removeprefix("ctxsim_")
        number = sum(name == base or name.startswith(f"{base}-") for name in named)
        named[f"{base}-{number + 1}" if number else base] = model
    return named
