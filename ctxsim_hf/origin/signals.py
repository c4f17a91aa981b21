"""Open the signals of an origin by name, and combine them into a weighted mean.

Signals differ in their spread: most cosines of words are close to 0, those of contexts are not. So a weight counts in
units of the standard deviation of its signal over pairs of background sentences, and the similarity is the mean

    sum_k (w_k / std_k) x_k  /  sum_k (w_k / std_k)

which orders pairs as standardised signals do, and is 1 where all signals are 1. A single signal is left as it is.

Other packages add signals with [`register_signal`], or, so that every process finds them, with an entry point of the
group `ctxsim_hf.signals` that names a factory.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import xxhash

from ctxsim_hf.encoder.encoder_signal import EncoderSignal
from ctxsim_hf.runtime.checks import ADDED_LATER, LOADABLE
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import digest_file
from ctxsim_hf.text.letters import LetterCosine
from ctxsim_hf.text.lexical import TfidfCosine
from ctxsim_hf.text.signal import Signal

GROUP = "ctxsim_hf.signals"  # of entry points
CONTEXTS, CLOZE = "contexts", "cloze"  # answered by context models; the others are opened from the folder
MIN_STD = 0.01  # in a small background no two sentences may share a word, so that the signal is constant
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
    """Open a signal from its folder in an origin."""
    for entry_point in entry_points(group=GROUP, name=name):
        _factories.setdefault(name, entry_point.load())
    if name not in _factories:
        raise UserError(f"unknown signal {name!r}; expected one of {', '.join([CONTEXTS, CLOZE, *_factories])}")
    if name == "encoder" and not folder.exists():
        raise UserError("this origin has no encoder; index again with --encoder, or leave the signal `encoder` out")
    return _factories[name](folder)


def shares(weights: Mapping[str, float], stds: Mapping[str, float]) -> dict[str, float]:
    """Turn weights into the shares of a mean, which add up to 1."""
    if len(weights) == 1:
        return dict.fromkeys(weights, 1.0)
    parts = {name: weight / max(stds[name], MIN_STD) for name, weight in weights.items()}
    total = sum(parts.values())
    return {name: part / total for name, part in parts.items()}


def mix(values: Mapping[str, Any], shares: Mapping[str, float]) -> Any:
    """Return the weighted mean of signals, which are numbers or arrays; refuse what is no number."""
    if broken := [name for name, share in shares.items() if not np.isfinite(share * np.sum(values[name]))]:
        raise UserError(f"the signal {broken[0]!r} gives scores that are no numbers, as its model is damaged")
    if len(shares) == 1:
        (name,) = shares
        return values[name]
    return np.sum([share * np.asarray(values[name]) for name, share in shares.items()], axis=0)


def check_encoder(folder: Path) -> None:
    """Refuse a folder without an encoder, or with one that needs files which an origin does not copy, such as weights
    that are not in safetensors."""
    files = _encoder_files(folder)
    with TemporaryDirectory() as view:
        for path in files:
            place = Path(view, path.relative_to(folder))
            place.parent.mkdir(exist_ok=True)
            place.symlink_to(path.resolve())
        try:
            EncoderSignal.open(Path(view))
            return
        except UserError:
            EncoderSignal.open(folder)  # says what is wrong, unless it is what is not copied
    others = sorted(path for path in folder.rglob("*") if path.suffix in LOADABLE and path not in files)
    found = ", ".join(path.relative_to(folder).as_posix() for path in others)
    raise UserError(
        f"expected a sentence encoder in {str(folder)!r} with weights in safetensors, but it needs other files, found "
        f"{found or 'none'}; open it with sentence-transformers and save it again"
    )


def copy_encoder(source: Path, target: Path) -> None:
    """Copy a sentence encoder into an origin, so that its scores do not depend on other folders."""
    for path in _encoder_files(source):
        place = target / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)


def describe_encoder(folder: Path) -> dict[str, str]:
    """Describe an encoder for the stage.json of an index: one digest of the files that are copied."""
    paths = [path for path in _encoder_files(folder) if path.name not in ADDED_LATER]
    digests = {path.relative_to(folder).as_posix(): digest_file(path) for path in paths}
    return {"xxh3_128": xxhash.xxh3_128_hexdigest(json.dumps(digests, sort_keys=True).encode())}


def _encoder_files(folder: Path) -> list[Path]:
    return [path for pattern in ENCODER_FILES for path in folder.glob(pattern)]
