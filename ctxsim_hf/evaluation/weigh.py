"""An origin and held-out documents -> the weights of its signals that the yardstick finds best: `ctxsim weigh`.

Which signal to trust depends on the corpus: a language model knows English and no Hausa, words mislead where everybody
uses the same ones. Every mixture on a grid is measured by the yardstick, each signal alone among them. A few hundred
pairs cannot tell most of them apart, so of those that come within one standard error of the best, by the paired
bootstrap, and are no worse than the best single signal, the one nearest to the weights that are expected is taken.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated

import numpy as np
from annotated_types import Ge, Le
from tqdm import tqdm
from transformers.hf_argparser import HfArg

from ctxsim_hf.evaluation.label_free import SPLIT, held_out_documents
from ctxsim_hf.evaluation.yardstick import Yardstick, yardstick
from ctxsim_hf.origin.chosen_weights import WEIGHTS_FILE, ChosenWeights
from ctxsim_hf.origin.layout import SIGNALS
from ctxsim_hf.origin.segments import Version
from ctxsim_hf.origin.settings_arguments import signal_weights
from ctxsim_hf.origin.signals import CLOZE, mix, shares
from ctxsim_hf.origin.similarity import OriginSimilarity
from ctxsim_hf.runtime.arguments import Arguments
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.estimates import Estimate
from ctxsim_hf.runtime.fetch import is_folder
from ctxsim_hf.runtime.record import open_stage
from ctxsim_hf.runtime.validation import Count, Seed
from ctxsim_hf.runtime.working import writing_into

WORDS = "words"
STEPS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)  # weights beside a signal of weight 1
# What did well on validation sets of four domains and languages, by the signals there are: docs/experiments.md.
EXPECTED = ({"encoder": 1.0, CLOZE: 0.25}, {"encoder": 1.0}, {CLOZE: 1.0, WORDS: 0.2})

Weights = tuple[tuple[str, float], ...]  # of the signals that have one


@dataclass(kw_only=True)
class WeighArguments(Arguments):
    """The arguments of `ctxsim weigh`."""

    origin: str = HfArg(help=f"Folder made by ctxsim index; {WEIGHTS_FILE} is written into it.")
    chunks: str = HfArg(help="Folder made by ctxsim chunk, whose held-out documents ask the questions.")
    signals: list[str] | None = HfArg(
        default=None,
        help="Signals to weigh, each with an expected weight, such as cloze=1 words=0.2; of mixtures that measure "
        "alike, the nearest to these is taken. By default all there are, with weights that did well elsewhere.",
    )
    least_words: Annotated[float, Ge(0), Le(1)] = HfArg(
        default=0.0,
        help="Smallest weight that words may get, from 0 to 1. 1 is for an origin whose generator was trained on "
        "these documents: it has learned to tell neighbours, so the yardstick overrates it.",
    )
    pairs: Count = HfArg(default=500, help="Related pairs of each question of the yardstick, and as many unrelated.")
    seed: Seed = HfArg(
        default=1, help="Seed of the questions. ctxsim evaluate --label-free draws with 0, and so judges by others."
    )
    cache: str | None = HfArg(default=None, help="Folder to keep vectors of a language model in from run to run.")


def run(arguments: WeighArguments) -> str:
    """Choose the weights, write them, and return a table."""
    if not is_folder(arguments.origin):  # one from the Hub is in a cache that others read
        raise UserError(
            f"expected a folder made by ctxsim index, to write {WEIGHTS_FILE} into; {arguments.origin!r} is none"
        )
    folder = Path(arguments.origin)
    expected = signal_weights(arguments.signals, None) or expected_weights(available_signals(folder))
    if arguments.least_words and WORDS not in expected:
        raise UserError(f"--least-words needs the signal {WORDS}, got {', '.join(expected)}")
    questions = yardstick(held_out_documents(arguments.chunks), SPLIT, arguments.pairs, arguments.seed)
    with writing_into(str(folder)):
        origin = OriginSimilarity.from_pretrained(
            folder, cache_folder=arguments.cache, signals=dict.fromkeys(expected, 1.0)
        )
        chosen = choose(origin, questions, expected, arguments.least_words)
        chosen.save(folder)
    return describe(chosen)


def available_signals(folder: Path) -> list[str]:
    """Return the signals of an origin that compare any two sentences at once, retrieved contexts left out."""
    has_states = Version.current(folder, open_stage(folder, "index")).cloze_states() is not None
    has_encoder = (folder / SIGNALS / "encoder").exists()
    return [*([CLOZE] if has_states else []), WORDS, *(["encoder"] if has_encoder else [])]


def expected_weights(names: Sequence[str]) -> dict[str, float]:
    """Return for each signal the weight that did well elsewhere, beside the others that there are."""
    known: dict[str, float] = next((weights for weights in EXPECTED if weights.keys() <= set(names)), {WORDS: 1.0})
    return {name: known.get(name, 0.0) for name in names}


def choose(
    origin: OriginSimilarity, questions: Yardstick, expected: Mapping[str, float], least_words: float = 0.0
) -> ChosenWeights:
    """Return the best weights of the signals that an origin was opened with, words with at least this one.

    Args:
        origin (`OriginSimilarity`): Its signals are weighed.
        questions (`Yardstick`): What they are weighed by.
        expected: Weights to stay near, as far as the yardstick does not find them worse.
        least_words (`float`): Least weight of words.
    """
    first, second = questions.pairs()
    asked = tqdm(origin.signals.items(), "signals", unit="signal", disable=None)
    scores = {name: np.asarray(signal.similarity(first, second), np.float64) for name, signal in asked}
    stds = origin.signal_stds()

    def measure(weights: Weights) -> Estimate:
        return questions.judge(mix(scores, shares(dict(weights), stds)))["auc"]

    grid = [weights for weights in _grid(tuple(scores)) if dict(weights).get(WORDS, 0) >= least_words]
    found = {weights: measure(weights) for weights in tqdm(grid, "weights", unit="mixture", disable=None)}
    top = max(found.values(), key=lambda estimate: estimate.value)
    # Where words must have a weight, they are the only single signal among what may be chosen.
    best_alone = max(estimate.value for weights, estimate in found.items() if len(weights) == 1)
    good = [
        weights
        for weights, estimate in found.items()
        if estimate.value >= best_alone and top.value - estimate.value <= _error(top - estimate)
    ]
    best = min(good, key=lambda weights: (_distance(dict(weights), expected), -found[weights].value))
    alone = {name: measure(((name, 1.0),)).value for name in scores}
    return ChosenWeights(dict(best), found[best].value, alone, len(first))


def describe(chosen: ChosenWeights) -> str:
    """Return the choice as a table."""
    rows = [f"{name:<24} {100 * value:.1f}" for name, value in chosen.alone.items()]
    mixture = " ".join(f"{name}={weight:g}" for name, weight in chosen.signals.items())
    lines = [
        f"The yardstick on {chosen.pairs:,} pairs of held-out sentences: how often a related pair scores higher "
        "than an unrelated one (x 100; by chance, 50)",
        *rows,
        f"{'chosen: ' + mixture:<24} {100 * chosen.yardstick:.1f}",
    ]
    return "\n".join(lines)


def _grid(names: Sequence[str]) -> Iterator[Weights]:
    """Yield weights of which the largest is 1, without those that are 0."""
    for weights in product(STEPS, repeat=len(names)):
        if max(weights) == 1:
            yield tuple((name, weight) for name, weight in zip(names, weights, strict=True) if weight)


def _error(difference: Estimate) -> float:
    """Return the standard error of a difference, 0 for that of a mixture with itself."""
    return float(np.nanstd(difference.resampled))


def _distance(weights: Mapping[str, float], expected: Mapping[str, float]) -> float:
    return sum(abs(weights.get(name, 0) - weight) for name, weight in expected.items())
