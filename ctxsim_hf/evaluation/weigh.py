"""An origin and held-out documents -> the weights of its signals that the yardstick finds best: `ctxsim weigh`.

Which signal to trust depends on the corpus: a language model knows English and no Hausa, words mislead where everybody
uses the same ones. Every mixture on a grid is measured by the yardstick, each signal alone among them. Of those that
come within TOLERANCE of the best, the one with the fewest signals is taken, since a signal has to earn its place; and
of these the one with most words, which were not learned from neighbours and so cannot flatter the yardstick.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated

import numpy as np
from annotated_types import Ge, Le
from scipy.stats import rankdata
from tqdm import tqdm
from transformers.hf_argparser import HfArg

from ctxsim_hf.evaluation.label_free import SPLIT, held_out_documents
from ctxsim_hf.evaluation.yardstick import Question, Yardstick, yardstick
from ctxsim_hf.origin.chosen_weights import WEIGHTS_FILE, ChosenWeights
from ctxsim_hf.origin.layout import SIGNALS
from ctxsim_hf.origin.segments import Version
from ctxsim_hf.origin.signals import CLOZE, mix, shares
from ctxsim_hf.origin.similarity import OriginSimilarity, origin_folder
from ctxsim_hf.runtime.arguments import Arguments
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.record import open_stage
from ctxsim_hf.runtime.validation import Count, Seed
from ctxsim_hf.runtime.working import writing_into

WORDS = "words"
TOLERANCE = 0.003  # of the yardstick, from 0 to 1: less than its noise
STEPS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)  # weights beside a signal of weight 1

Scores = Mapping[str, np.ndarray]  # of each signal for each pair


@dataclass(kw_only=True)
class WeighArguments(Arguments):
    """The arguments of `ctxsim weigh`."""

    origin: str = HfArg(help=f"Folder made by ctxsim index; {WEIGHTS_FILE} is written into it.")
    chunks: str = HfArg(help="Folder made by ctxsim chunk, whose held-out documents ask the questions.")
    signals: list[str] = HfArg(
        default_factory=list, help="Signals to weigh; by default cloze, words and encoder, as far as there are."
    )
    least_words: Annotated[float, Ge(0), Le(1)] = HfArg(
        default=0.0,
        help="Least weight of words, up to 1, for an origin whose generator has learned to tell neighbours: the "
        "yardstick, which asks for them, would praise it too much.",
    )
    pairs: Count = HfArg(default=500, help="Related pairs of each question of the yardstick, and as many unrelated.")
    seed: Seed = HfArg(default=0, help="Seed of the questions.")
    cache: str | None = HfArg(default=None, help="Folder to keep vectors of a language model in from run to run.")


def run(arguments: WeighArguments) -> str:
    """Choose the weights, write them, and return a table."""
    folder = origin_folder(arguments.origin)
    names = arguments.signals or available_signals(folder)
    documents = held_out_documents(arguments.chunks)
    questions = yardstick(documents, SPLIT, arguments.pairs, arguments.seed)
    with writing_into(str(folder)):
        origin = OriginSimilarity.from_pretrained(
            folder, cache_folder=arguments.cache, signals=dict.fromkeys(names, 1.0)
        )
        chosen = choose(origin, questions, arguments.least_words)
        chosen.save(folder)
    return describe(chosen)


def available_signals(folder: Path) -> list[str]:
    """Return the signals of an origin that compare any two sentences at once, retrieved contexts left out."""
    has_states = Version.current(folder, open_stage(folder, "index")).cloze_states() is not None
    has_encoder = (folder / SIGNALS / "encoder").exists()
    return [*([CLOZE] if has_states else []), WORDS, *(["encoder"] if has_encoder else [])]


def choose(origin: OriginSimilarity, questions: Yardstick, least_words: float = 0.0) -> ChosenWeights:
    """Return the best weights of the signals that an origin was opened with, words with at least this one."""
    first, second = questions.pairs()
    asked = tqdm(origin.signals.items(), "signals", unit="signal", disable=None)
    scores = {name: np.asarray(signal.similarity(first, second), np.float64) for name, signal in asked}
    if broken := [name for name, found in scores.items() if not np.isfinite(found).all()]:
        raise UserError(f"the signal {broken[0]!r} gave scores that are no numbers")
    stds = origin.signal_stds()
    grid = [weights for weights in _grid(tuple(scores)) if dict(weights).get(WORDS, 0) >= least_words]
    found = {weights: _measure(scores, stds, weights, questions.questions) for weights in grid}
    alone = {name: _measure(scores, stds, ((name, 1.0),), questions.questions) for name in scores}
    good = [weights for weights, value in found.items() if value >= max(found.values()) - TOLERANCE]
    best = max(good, key=lambda weights: (-len(weights), dict(weights).get(WORDS, 0), found[weights]))
    return ChosenWeights(dict(best), found[best], alone, len(first))


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


def _grid(names: Sequence[str]) -> Iterator[tuple[tuple[str, float], ...]]:
    """Yield weights of which the largest is 1, without those that are 0."""
    for weights in product(STEPS, repeat=len(names)):
        if max(weights) == 1:
            yield tuple((name, weight) for name, weight in zip(names, weights, strict=True) if weight)


def _measure(
    scores: Scores, stds: Mapping[str, float], weights: tuple[tuple[str, float], ...], questions: Sequence[Question]
) -> float:
    """Return the yardstick of a mixture."""
    mixed = mix(scores, shares(dict(weights), stds))
    ends = np.cumsum([len(question) for question in questions])[:-1]
    parts = zip(questions, np.split(mixed, ends), strict=True)
    return float(np.mean([_auc(part, question.scores == 1) for question, part in parts]))


def _auc(scores: np.ndarray, related: np.ndarray) -> float:
    number = int(related.sum())
    ranks = rankdata(scores)[related].sum() - number * (number + 1) / 2
    return float(ranks / (number * (len(scores) - number)))
