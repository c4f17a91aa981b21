"""Define the ablations, each as a list of arms with the full one first: the paper's six, and those of
signal_ablations.py."""

from pathlib import Path

from ctxsim_hf.origin.layout import Layout
from ctxsim_hf.recipes.adapted_folder import AdaptedFolder
from ctxsim_hf.recipes.arms import Ablation, Arm, Place, short_number
from ctxsim_hf.recipes.signal_ablations import bridges, signals
from ctxsim_hf.recipes.steps import Step
from ctxsim_hf.runtime.presets import PRESETS
from ctxsim_hf.runtime.record import read_stage

NUM_CONTEXTS = (1000, 500, 100, 20)
SCREEN_CHUNKS = 5000  # in every arm of `contexts`: enough for 1000 different ones, at most one from a chunk
SHARES_OF_DOCUMENTS = (1, 4, 16, 64)  # one in so many
MIN_DOCUMENTS = 20  # the fewest that a share may have
NUM_PAIRS = (10_000_000, 1_000_000, 100_000, 10_000, 1000)
TRAINING_SHARE = 0.8  # of the minutes; the rest is for harvests and evaluations
UNLIMITED_EPOCHS = 100_000  # the arms are compared at equal minutes


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
    shares = [number for number in SHARES_OF_DOCUMENTS if documents >= number * MIN_DOCUMENTS or number == 1]
    return [_share_of_documents(place, number) for number in shares]


def _share_of_documents(place: Place, one_in: int) -> Arm:
    """Return an arm with a light generator in closed form and an index, both of one in `one_in` documents."""
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
    """Return arms for all pairs of the folder and for smaller harvests, each of which is part of the larger ones."""
    adapted = place.adapted
    harvested = sum(read_stage(adapted.place("pairs"), "harvest")["counts"]["pairs"].values())
    # A harvest of nearly all pairs would have the same name and tell nothing new.
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
    ),
    "contexts": Ablation(
        f"Contexts in the set of a sentence, out of {SCREEN_CHUNKS:,} chunks.",
        _contexts,
        varies=("num_contexts", "screen_chunks"),
    ),
    "pairs": Ablation(
        "Harvested pairs that a surrogate learns from, for as many minutes in every arm.",
        _pairs,
        asks_origin=False,
    ),
    "strategy": Ablation("How the set of contexts is chosen.", _strategy, varies=("strategy",)),
    "terms": Ablation("Terms of the fit score (Eq. 3), of weight 1 or 0.", _terms, varies=("weights",)),
    "structure": Ablation(
        "Two sentences apart (siamese) or together (cross), from the same pairs, for as many minutes.",
        _structure,
        asks_origin=False,
    ),
    "signals": Ablation(
        "Signals that the origin weighs, each alone and each left out.",
        signals,
        varies=("signals", "lexical_weight"),
        signals=None,
        expects=None,
    ),
    "bridges": Ablation(
        "Texts by which the language model is asked for a word (the signal cloze).",
        bridges,
        signals=("cloze=1",),
        expects=AdaptedFolder.expect_language_model,
    ),
}
