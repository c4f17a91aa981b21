"""Define the ablations that the paper does not have: signals of an origin, and bridges of its language model."""

from collections.abc import Mapping
from pathlib import Path

from ctxsim_hf.context_models.causal.settings import CausalSettings
from ctxsim_hf.evaluation.weigh import available_signals
from ctxsim_hf.origin.layout import CONTEXT_MODELS, Layout
from ctxsim_hf.recipes.arms import Arm, Place
from ctxsim_hf.recipes.steps import Step
from ctxsim_hf.runtime.record import read_stage

# Of those in docs/experiments.md, the best on health questions, and the one that helped the default ones on STSb.
SUMMARIZED = 'The sentence "{}" can be summarized in one word as "'
READ_TWICE = '{} In other words: {} In one word: "'


def signals(place: Place) -> list[Arm]:
    """Return an arm for the origin's own weights, for each signal alone and for the weights without each signal."""
    own = place.adapted.signals
    names = dict.fromkeys([*own, *available_signals(Path(place.adapted.origin))])
    mixtures = {
        "the origin's own weights": own,
        **{f"{name} alone": {name: 1.0} for name in names},
        **{f"without {name}": {other: own[other] for other in own if other != name} for name in own},
    }
    arms: dict[frozenset[str], Arm] = {}
    for name, weights in mixtures.items():
        # A single signal is left as it is, whatever its weight.
        flags = spell(weights if len(weights) > 1 else dict.fromkeys(weights, 1.0))
        if flags:
            arms.setdefault(frozenset(flags), Arm(name, place.origin, {"signals": flags}, note=" ".join(flags)))
    return list(arms.values())


def spell(weights: Mapping[str, float]) -> list[str]:
    """Return weights of signals as `--signals` takes them."""
    return [f"{name}={weight}".removesuffix(".0") for name, weight in weights.items()]


def bridges(place: Place) -> list[Arm]:
    """Return an arm for the origin's own bridges, and origins of the same chunks and the same model with others."""
    origin = Path(place.adapted.origin)
    (language_model,) = Layout.load(origin).context_models  # `ctxsim adapt` puts no other beside it
    model = origin / CONTEXT_MODELS / language_model
    own = CausalSettings.load(model).bridges
    choices = {
        "the origin's own bridges": own,
        **{f"bridge {number} alone": [bridge] for number, bridge in enumerate(own, 1)},
        "summarized in one word": [SUMMARIZED],
        "with one that reads twice": [*own, READ_TWICE],
    }
    arms: dict[tuple[str, ...], Arm] = {}
    for name, chosen in choices.items():
        arms.setdefault(tuple(chosen), _with_bridges(place, name, model, chosen, own))
    return list(arms.values())


def _with_bridges(place: Place, name: str, model: Path, chosen: list[str], own: list[str]) -> Arm:
    adapted, note = place.adapted, " and ".join(f"`{bridge}`" for bridge in chosen)
    record = read_stage(adapted.origin, "index")
    if chosen == own and "history" not in record:  # one that has grown has other documents than its chunks
        return Arm(name, place.origin, note=note)
    origin = place.of(name, "origin")
    models = {"context_model": [str(model)], "bridges": chosen, "encoder": adapted.start}
    values = {"chunks": adapted.place("chunks"), **models, **record["arguments"], "workers": place.workers}
    return Arm(name, f"origin:{origin}", steps=[Step.stage("index", origin, **values)], note=note)
