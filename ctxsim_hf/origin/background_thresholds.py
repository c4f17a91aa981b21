"""An origin -> what its similarities mean: those of pairs of background sentences, which are unrelated.

They are measured once, when an origin is indexed. thresholds.json is no part of what stage.json records: `ctxsim
evaluate --save-thresholds` replaces it by one that knows adjacent sentences too.
"""

from pathlib import Path

from ctxsim_hf.encoder.thresholds import THRESHOLDS_FILE, Thresholds
from ctxsim_hf.origin.cloze_signal import ClozeSignal
from ctxsim_hf.origin.signals import CLOZE, CONTEXTS
from ctxsim_hf.origin.similarity import OriginSimilarity

PAIRS = 250
SENTENCES_WITH_CONTEXTS = 32  # finding the contexts of a sentence takes longer than comparing a pair


def write_background_thresholds(folder: str | Path) -> None:
    """Write thresholds.json into an origin that has none, unless its models are so slow that it would take hours."""
    if (Path(folder) / THRESHOLDS_FILE).exists():
        return
    origin = OriginSimilarity.from_pretrained(folder)
    if CONTEXTS in origin.signals and not origin.has_fast_contexts:
        return
    remember_background(origin)
    background = origin.version.background
    pairs = _pairs(min(len(background), SENTENCES_WITH_CONTEXTS if CONTEXTS in origin.signals else len(background)))
    scores = origin.similarity([background[first] for first, _ in pairs], [background[second] for _, second in pairs])
    Thresholds.from_scores(scores, None, origin.settings.to_json()).save(folder)


def remember_background(origin: OriginSimilarity) -> None:
    """Spare a language model from reading the background again, where what it made of it is stored."""
    states = origin.version.cloze_states()
    if isinstance(cloze := origin.signals.get(CLOZE), ClozeSignal) and states is not None:
        cloze.remember(origin.version.background, states)


def _pairs(number: int) -> list[tuple[int, int]]:
    """Return pairs of so many sentences, each sentence in as few of them as possible."""
    steps = range(1, max(2, (number + 1) // 2))
    return [(first, (first + step) % number) for step in steps for first in range(number)][:PAIRS]
