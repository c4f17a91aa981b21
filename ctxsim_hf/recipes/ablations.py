"""What the six ablations of the paper vary: each a list of arms, the full one first.

An arm is a system, and the steps that make it, if it is not in the folder of `ctxsim adapt` already.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ctxsim_hf.origin.layout import Layout
from ctxsim_hf.recipes.adapted_folder import AdaptedFolder
from ctxsim_hf.recipes.steps import Step
from ctxsim_hf.runtime.presets import PRESETS
from ctxsim_hf.runtime.stage import read_stage
from ctxsim_hf.text.tokenized import tokenize_chunks

NUM_CONTEXTS = (1000, 500, 100, 20)
SCREEN_CHUNKS = 5000  # in every arm of `contexts`: enough for 1000 that differ, one from a chunk at most
SHARES_OF_DOCUMENTS = (1, 4, 16, 64)  # one in so many
LEAST_DOCUMENTS = 20  # of a share
NUM_PAIRS = (10_000_000, 1_000_000, 100_000, 10_000, 1000)
TRAINING_SHARE = 0.8  # of the minutes; the rest is for the harvests and the evaluations
UNLIMITED_EPOCHS = 100_000  # equal minutes are what the arms have in common
ORIGIN_LIMIT = 500  # pairs: with 100 contexts an origin takes a tenth of a second for each, with 1000 a whole one


@dataclass(frozen=True)
class Arm:
    name: str  # in tables, and of its folder
    system: str  # as `ctxsim evaluate` spells it
    settings: Mapping[str, Any] = field(default_factory=dict)  # arguments of `ctxsim evaluate`
    steps: Sequence[Step] = ()  # that make the system
    chunks: str | None = None  # whose tokens are told beside the name


class Place(NamedTuple):
    """What arms are made from, and where."""

    adapted: AdaptedFolder
    output: Path
    minutes: float
    workers: int

    @property
    def origin(self) -> str:
        """The adapted origin, as `ctxsim evaluate` spells it."""
        return f"origin:{self.adapted.origin}"

    def of(self, arm: str, name: str) -> str:
        return str(self.output / folder_name(arm) / name)


class Ablation(NamedTuple):
    about: str
    arms: Callable[[Place], list[Arm]]
    varies: tuple[str, ...]  # settings of the origin that are the arms' own
    asks_origin: bool = True  # or a surrogate, which has no such settings, and is quick

    @property
    def limit(self) -> int | None:
        """Pairs of each task, where the user does not say."""
        return ORIGIN_LIMIT if self.asks_origin else None


def folder_name(arm: str) -> str:
    return arm.replace(" ", "-")


def title(arm: Arm, adapted: AdaptedFolder) -> str:
    """The arm's name in tables."""
    if arm.chunks is None:
        return arm.name
    tokens = len(tokenize_chunks(arm.chunks, adapted.place("tokenizer"), "train").tokens)
    return f"{arm.name}, {short_number(tokens)} tokens"


def short_number(number: int) -> str:
    """1K, 980K, 1M, 34.5M."""
    for size, letter in ((10**9, "B"), (10**6, "M"), (10**3, "K")):
        if number >= size:
            return f"{number / size:.1f}".removesuffix(".0") + letter
    return str(number)


def _contexts(place: Place) -> list[Arm]:
    return [
        Arm(f"{number} contexts", place.origin, {"num_contexts": number, "screen_chunks": SCREEN_CHUNKS})
        for number in NUM_CONTEXTS
    ]


def _strategy(place: Place) -> list[Arm]:
    strategies = ("two_step", "random", "no_diversity")
    return [Arm(strategy, place.origin, {"strategy": strategy}) for strategy in strategies]


def _terms(place: Place) -> list[Arm]:
    weights = {
        "all four": [1.0, 1.0, 1.0, 1.0],
        "without discriminative": [0.0, 1.0, 1.0, 1.0],
        "without left": [1.0, 1.0, 0.0, 1.0],
        "without right": [1.0, 1.0, 1.0, 0.0],
        "without left and right": [1.0, 1.0, 0.0, 0.0],
    }
    if "discriminator" not in Layout.load(Path(place.adapted.origin)).context_models:  # as `ctxsim adapt` leaves it
        del weights["all four"]
        weights = {name: [0.0, *numbers[1:]] for name, numbers in weights.items()}
    arms = [Arm(name, place.origin, {"weights": numbers}) for name, numbers in weights.items()]
    return [*arms, Arm("the origin's own weights", place.origin)]


def _corpus_size(place: Place) -> list[Arm]:
    counts = read_stage(place.adapted.place("chunks"))["counts"]
    documents = counts["documents_kept"] - counts["documents_held_out"]
    shares = [number for number in SHARES_OF_DOCUMENTS if documents >= number * LEAST_DOCUMENTS or number == 1]
    return [_share_of_documents(place, number) for number in shares]


def _share_of_documents(place: Place, one_in: int) -> Arm:
    """A light generator in closed form and an index, of some of the documents."""
    adapted, name = place.adapted, "all documents" if one_in == 1 else f"1 in {one_in} documents"
    generator, origin = place.of(name, "generator"), place.of(name, "origin")
    chunks = adapted.place("chunks") if one_in == 1 else place.of(name, "chunks")
    sizes = PRESETS[adapted.preset]
    preset = adapted.preset if "light_generator" in sizes else "light"
    learned = {"chunks": chunks, "tokenizer": adapted.place("tokenizer"), "preset": preset, "width": sizes["width"]}
    sample = Step.stage("sample", chunks, chunks=adapted.place("chunks"), share=1 / one_in)
    making = [
        *([] if one_in == 1 else [sample]),
        Step.stage("train generator", generator, **learned, closed_form=True),
        Step.stage("index", origin, chunks=chunks, generator=[generator], workers=place.workers),
    ]
    return Arm(name, f"origin:{origin}", steps=making, chunks=chunks)


def _pairs(place: Place) -> list[Arm]:
    """All pairs of the folder, and smaller harvests of the same kind, which lie inside it and each other."""
    adapted = place.adapted
    harvested = sum(read_stage(adapted.place("pairs"), "harvest")["counts"]["pairs"].values())
    # One that is nearly the whole harvest would bear its name, and say nothing new.
    numbers = [harvested, *(n for n in NUM_PAIRS if n < harvested and short_number(n) != short_number(harvested))]
    arms = []
    for number in numbers:
        name = f"{short_number(number)} pairs"
        pairs = adapted.place("pairs") if number == harvested else place.of(name, "pairs")
        harvest = [] if number == harvested else [Step.stage("harvest", pairs, **adapted.harvest_values(number))]
        surrogate = _surrogate(place, name, pairs, "pairs", len(numbers))
        arms.append(Arm(name, f"surrogate:{surrogate.leaves}", steps=[*harvest, surrogate]))
    return arms


def _structure(place: Place) -> list[Arm]:
    pairs = place.adapted.place("pairs")
    siamese = _surrogate(place, "siamese", pairs, "pairs", 2)
    cross = _surrogate(place, "cross", pairs, "cross", 2)
    return [
        Arm("siamese", f"surrogate:{siamese.leaves}", steps=[siamese]),
        Arm("cross", f"cross:{cross.leaves}", steps=[cross]),
    ]


def _surrogate(place: Place, arm: str, pairs: str, objective: str, num_arms: int) -> Step:
    minutes = round(TRAINING_SHARE * place.minutes / num_arms, 4)
    limits = {"epochs": UNLIMITED_EPOCHS, "max_train_minutes": minutes}
    values = place.adapted.surrogate_values(pairs, objective)
    return Step.stage("train surrogate", place.of(arm, "surrogate"), **values, **limits)


ABLATIONS = {
    "corpus-size": Ablation(
        "Documents that a light generator (in closed form) and the index are made of; the tokenizer is "
        "that of all documents.",
        _corpus_size,
        varies=(),
    ),
    "contexts": Ablation(
        f"Contexts in the set of a sentence, out of {SCREEN_CHUNKS:,} chunks.",
        _contexts,
        varies=("num_contexts", "screen_chunks"),
    ),
    "pairs": Ablation(
        "Harvested pairs that a surrogate learns from, for as many minutes in every arm.",
        _pairs,
        varies=(),
        asks_origin=False,
    ),
    "strategy": Ablation("How the set of contexts is chosen.", _strategy, varies=("strategy",)),
    "terms": Ablation("Terms of the fit score (Eq. 3), of weight 1 or 0.", _terms, varies=("weights",)),
    "structure": Ablation(
        "Two sentences apart (siamese) or together (cross), from the same pairs, for as many minutes.",
        _structure,
        varies=(),
        asks_origin=False,
    ),
}
