"""The arguments of `ctxsim adapt` -> its steps, in order."""

from pathlib import Path
from typing import Any

from ctxsim_hf.origin.chosen_weights import WEIGHTS_FILE
from ctxsim_hf.origin.layout import SIGNALS
from ctxsim_hf.recipes.adapt_arguments import AdaptArguments
from ctxsim_hf.recipes.budget import FAST_QUESTIONS, Budget
from ctxsim_hf.recipes.growth import is_outdated
from ctxsim_hf.recipes.steps import Step
from ctxsim_hf.recipes.verdict import WITHOUT_LEARNING
from ctxsim_hf.runtime.presets import PRESETS

MAX_EPOCHS = 10  # a small corpus is soon overfitted
SURROGATE, START = "surrogate", "start"  # names in the last table


def plan(arguments: AdaptArguments, speed: float | None = None, leave_start: bool = False) -> list[Step]:
    """Return the steps.

    Args:
        arguments (`AdaptArguments`): All that the steps depend on otherwise, so that a resumed run has the same ones.
        speed (`float`, *optional*): Sentences a second that the language model reads. None if there is none.
        leave_start (`bool`): Whether the start takes the place of a surrogate that the yardstick finds worse.
    """
    folder, workers = arguments.folder, arguments.workers
    budget = Budget(arguments.minutes, speed, arguments.start is not None)
    chunks, vectors = folder.place("chunks"), folder.place("vectors")
    taught, start = folder.teacher_values(vectors), folder.place(START)
    untrained = Step.stage("train surrogate", start, **taught, keep="start")  # further documents do not change it
    trained = {
        **taught,
        "epochs": MAX_EPOCHS,
        "max_train_minutes": budget.minutes_of("surrogate"),
        "keep": "start" if leave_start else None,
    }
    indexed = {"encoder": arguments.start, "workers": workers}
    # A run that is killed does not have to read the questions again.
    cache = folder.place("cache") if arguments.context_model else None
    weights = {"origin": folder.origin, "chunks": chunks, "cache": cache, "pairs": budget.questions}
    judged = {"label_free": True, "save_thresholds": True, "chunks": chunks, "limit": FAST_QUESTIONS}
    pairs = folder.place("pairs")
    new_vectors = is_outdated(vectors, "origin", folder.origin)
    new_surrogate = leave_start or new_vectors or is_outdated(folder.surrogate, "data", vectors)
    new_pairs = is_outdated(pairs, "origin", folder.origin)
    cards = {
        model: {"folders": [model], "language": arguments.language} for model in (folder.surrogate, folder.origin)
    }
    drawn = {"origin": folder.origin, "sentences": budget.vectors, "workers": workers}
    return [
        chunk_step(arguments),
        *_models(arguments, budget),
        Step.stage("index", folder.origin, chunks=chunks, **_context_models(arguments, budget), **indexed),
        Step("weigh", weights | _weighed(arguments), str(Path(folder.origin, WEIGHTS_FILE))),
        Step.stage("harvest-vectors", vectors, **drawn, overwrite=new_vectors),
        *([] if arguments.start else [untrained]),
        Step.stage("train surrogate", folder.surrogate, **trained, overwrite=new_surrogate),
        Step.evaluation(_systems(arguments), folder.surrogate, **judged),
        Step.stage("harvest", pairs, **folder.harvest_values(budget.pairs), overwrite=new_pairs),
        *(Step("card", values, f"{model}/README.md") for model, values in cards.items()),
    ]


def _weighed(arguments: AdaptArguments) -> dict[str, Any]:
    """Return the arguments of `ctxsim weigh` that say what is expected. A generator has learned to tell neighbours, so
    that the yardstick praises it too much: beside words, which keep their weight, and beside an encoder, where people
    find the mixture worse on health questions, so that it is left out (docs/experiments.md)."""
    if arguments.context_model is not None:
        return {}
    if arguments.start is not None:
        return {"signals": ["words=0", "encoder=1"]}
    return {"signals": ["cloze=1", "words=1"], "least_words": 1.0}


def _systems(arguments: AdaptArguments) -> list[str]:
    """Return what the last table compares, the surrogate first. A language model is too slow to be asked so much; how
    good the teacher is with one is known from choosing its weights."""
    folder = arguments.folder
    started = f"{START}=surrogate:{_start(arguments)}"
    teacher = [f"teacher=origin:{folder.origin}"] if arguments.context_model is None else []
    others = [started, *teacher, *WITHOUT_LEARNING.values(), *arguments.compare]
    return [f"{SURROGATE}=surrogate:{folder.surrogate}", *others]


def _start(arguments: AdaptArguments) -> str:
    """Return the folder of what the surrogate starts from: an encoder, or the untrained vectors of words."""
    encoder = str(Path(arguments.folder.origin, SIGNALS, "encoder"))
    return arguments.folder.place(START) if arguments.start is None else encoder


def chunk_step(arguments: AdaptArguments) -> Step:
    """Return the step that cuts the corpus into chunks."""
    return Step.stage("chunk", arguments.folder.place("chunks"), **arguments.reading(), workers=arguments.workers)


def _models(arguments: AdaptArguments, budget: Budget) -> list[Step]:
    """Return the steps that make a tokenizer and a generator, where they are needed."""
    if arguments.context_model is not None and arguments.start is not None:  # each has a tokenizer
        return []
    place, sizes = arguments.folder.place, PRESETS[arguments.preset]
    vocab_size = sizes["vocab_size"]
    if arguments.context_model is not None:  # which reads every token once
        vocab_size = min(vocab_size, budget.words)
    vocabulary = {"vocab_size": vocab_size, "lowercase": sizes["lowercase"]}
    tokenizer = Step.stage("train-tokenizer", place("tokenizer"), chunks=place("chunks"), **vocabulary)
    if arguments.context_model is not None:
        return [tokenizer]
    kind = {} if "light_generator" in sizes else {"kind": "seq2seq", "direction": "all"}
    learned = {"chunks": place("chunks"), "tokenizer": place("tokenizer"), "preset": arguments.preset}
    limits = {"epochs": MAX_EPOCHS, "max_train_minutes": budget.minutes_of("generator")}
    return [tokenizer, Step.stage("train generator", place("generator"), **learned, **kind, **limits)]


def _context_models(arguments: AdaptArguments, budget: Budget) -> dict[str, Any]:
    """Return the arguments of `ctxsim index` that name its context model."""
    if arguments.context_model is None:
        return {"generator": [arguments.folder.place("generator")]}
    return {"context_model": [arguments.context_model], "background": budget.background}
