"""The signals of an origin by name, and their weighted mean.

Signals differ in how far they spread: cosines of words hardly leave 0 where cosines of contexts roam. So a weight
counts in units of a signal's own deviation over pairs of background sentences, and the similarity is the mean

    sum_k (w_k / deviation_k) x_k  /  sum_k (w_k / deviation_k)

which orders pairs as standardised signals do, and is 1 where all signals are. One signal alone is left as it is.

Signals of others come in by [`register_signal`], or, so that every process finds them, by an entry point of the group
`ctxsim_hf.signals` that names a factory.
"""

import shutil
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np

from ctxsim_hf.encoder.encoder_signal import EncoderSignal
from ctxsim_hf.encoder.find_surrogate import fingerprint
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.letters import LetterCosine
from ctxsim_hf.text.lexical import TfidfCosine
from ctxsim_hf.text.signal import Signal

GROUP = "ctxsim_hf.signals"  # of entry points
CONTEXTS, CLOZE = "contexts", "cloze"  # what context models say; all others are opened from the folder
LEAST_DEVIATION = 0.01  # no signal counts as steadier: in a small background two sentences may share no word at all
ENCODER_FILES = ("*.json", "*.safetensors", "*.txt", "*.onnx", "*/*.json", "*/*.safetensors")

Factory = Callable[[Path], Signal]
_factories: dict[str, Factory] = {
    "words": lambda folder: LetterCosine(TfidfCosine.load(folder)),
    "encoder": EncoderSignal.open,
}


def register_signal(name: str, factory: Factory) -> None:
    """Let origins weigh a signal of this name.

    Args:
        name (`str`): As in an origin's settings, `signals={"contexts": 1, name: 0.5}`.
        factory: Called with the folder `signals/<name>` of the origin, which need not exist.
    """
    if name in (CONTEXTS, CLOZE) or not name.isidentifier():
        raise UserError(f"a signal needs a name of its own, got {name!r}")
    _factories[name] = factory


def open_signal(name: str, folder: Path) -> Signal:
    for entry_point in entry_points(group=GROUP, name=name):
        _factories.setdefault(name, entry_point.load())
    if name not in _factories:
        raise UserError(f"unknown signal {name!r}; expected one of {', '.join([CONTEXTS, CLOZE, *_factories])}")
    if name == "encoder" and not folder.exists():
        raise UserError("this origin has no encoder; index again with --encoder, or leave the signal `encoder` out")
    return _factories[name](folder)


def shares(weights: Mapping[str, float], deviations: Mapping[str, float]) -> dict[str, float]:
    """Turn weights into factors of a mean, which add up to 1."""
    if len(weights) == 1:
        return dict.fromkeys(weights, 1.0)
    parts = {name: weight / max(deviations[name], LEAST_DEVIATION) for name, weight in weights.items()}
    total = sum(parts.values())
    return {name: part / total for name, part in parts.items()}


def mix(values: Mapping[str, Any], shares: Mapping[str, float]) -> Any:
    """Return the weighted mean of signals, numbers or arrays."""
    if len(shares) == 1:
        (name,) = shares
        return values[name]
    return np.sum([share * np.asarray(values[name]) for name, share in shares.items()], axis=0)


def copy_encoder(source: Path, target: Path) -> None:
    """Copy a sentence encoder into an origin, so that its scores do not depend on what lies elsewhere."""
    for pattern in ENCODER_FILES:
        for path in source.glob(pattern):
            place = target / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)


def describe_encoder(folder: Path) -> dict[str, str]:
    """Describe an encoder for the stage.json of an index."""
    return {"xxh3_128": fingerprint(folder)}
