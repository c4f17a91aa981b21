"""Named model sizes. A preset only fills the arguments that the user left unset."""

from typing import Annotated, Any, TypeVar

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.validation import OneOf

_TINY = {
    "vocab_size": 2000,
    "lowercase": True,
    "width": 1,
    "discriminator": {"embedding_size": 32, "hidden_size": 32, "head_size": 32, "learning_rate": 4e-3},
    "generator": {"layers": 1, "hidden_size": 32, "heads": 2, "ffn_size": 64, "learning_rate": 4e-3},
    "light_generator": {"hidden_size": 32, "learning_rate": 1e-2},
    "surrogate": {"layers": 2, "hidden_size": 64, "heads": 2, "ffn_size": 256, "learning_rate": 1e-3},
}
_LIGHT = {
    "vocab_size": 16_000,
    "lowercase": True,
    "width": 1,
    "discriminator": {"embedding_size": 128, "hidden_size": 128, "head_size": 256, "learning_rate": 4e-3},
    "light_generator": {"hidden_size": 256, "learning_rate": 1e-2},
    "surrogate": {"layers": 4, "hidden_size": 256, "heads": 4, "ffn_size": 1024, "learning_rate": 5e-4},
}
_SMALL = _LIGHT | {
    "vocab_size": 8000,
    "generator": {"layers": 2, "hidden_size": 192, "heads": 4, "ffn_size": 768, "learning_rate": 2e-3},
}
_BASE = {
    "vocab_size": 32_000,
    "lowercase": False,
    "width": 2,
    "discriminator": {"embedding_size": 300, "hidden_size": 300, "head_size": 300, "learning_rate": 1e-3},
    "generator": {"layers": 6, "hidden_size": 512, "heads": 8, "ffn_size": 2048, "learning_rate": 5e-4},
    # RoBERTa's sizes, and the paper's learning rate.
    "surrogate": {"layers": 12, "hidden_size": 768, "heads": 12, "ffn_size": 3072, "learning_rate": 1e-4},
}
# The paper's sizes, section 4.1.
_LARGE = _BASE | {
    "generator": {"layers": 6, "hidden_size": 1024, "heads": 16, "ffn_size": 4096, "learning_rate": 2e-4},
    "surrogate": {"layers": 24, "hidden_size": 1024, "heads": 16, "ffn_size": 4096, "learning_rate": 1e-4},
}

PRESETS: dict[str, dict[str, Any]] = {
    "tiny": _TINY,
    "light": _LIGHT,
    "small": _SMALL,
    "base": _BASE,
    "large": _LARGE,
}
Preset = Annotated[str, OneOf(PRESETS)]
Value = TypeVar("Value")


def preset_sizes(name: str, part: str) -> dict[str, Any]:
    """Return the sizes of one part of a preset, e.g. `discriminator`, and the width of its contexts."""
    if part not in PRESETS[name]:
        others = [preset for preset, sizes in PRESETS.items() if part in sizes]
        raise UserError(f"the preset {name!r} has no {part.replace('_', ' ')}; expected one of {', '.join(others)}")
    return {"width": PRESETS[name]["width"], **PRESETS[name][part]}


def fill_from_preset(arguments: Any, part: str) -> None:
    """Set the fields of a dataclass that are None to the sizes of its `preset`. Other sizes are ignored."""
    for name, value in preset_sizes(arguments.preset, part).items():
        if getattr(arguments, name, value) is None:
            setattr(arguments, name, value)


def filled(value: Value | None) -> Value:
    """Return a value that a preset or a default filled before; None is a mistake of ours, and trains nothing."""
    if value is None:
        raise ValueError("expected a value that a preset or a default has filled, got None")
    return value
