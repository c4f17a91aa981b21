"""Estimate time, memory and disk of every stage from measured constants.

Each part of a stage costs `start + sum(rate * quantity)`. The quantities say how it scales: `documents`, `words`,
`pairs`, or `pairs * chunks`, since TF-IDF looks through all chunks for the sentences of a group. A document has half a
chunk more than its words fill, on average, for it is cut into a whole number of them. Parallel parts are divided by
all cores; the others run on one core, whatever the number of machines. The constants are CPU seconds of one core, in a
JSON file written by `python -m benchmarks.bench_costs`; those that come with the package hold for the machine named in
it. A context model of another size is charged in proportion to its work for a token: the hidden size of a light
generator, the layers times the squared hidden size of the others, and the parameters of a causal language model, which
are a quantity of their own, since they also say how much memory it takes.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.presets import preset_sizes
from ctxsim_hf.runtime.validation import NonNegative, Positive, check_value, validate

SHIPPED = Path(__file__).with_name("costs.json")
PRESET_PARTS = {"light": "light_generator", "seq2seq": "generator"}  # kind of context model -> its sizes in a preset


@dataclass(frozen=True)
class Workload:
    """What is to be done, and on how many cores."""

    words: int
    documents: int
    pairs: int
    cores: int = 1
    parameters: int = 0  # of a causal language model


@dataclass(frozen=True)
class Cost:
    """The estimate for one part of a stage."""

    part: str
    cores: int
    seconds: float  # from start to end
    memory: float  # bytes, of one process
    disk: float  # bytes that stay

    @property
    def core_hours(self) -> float:
        return self.seconds * self.cores / 3600


@dataclass(frozen=True)
class Part:
    """What a part of a stage takes: a quantity, or `start` -> how much for each."""

    seconds: dict[str, NonNegative]
    memory: dict[str, NonNegative]
    disk: dict[str, NonNegative]
    parallel: bool

    def __post_init__(self) -> None:
        validate(self)


class CostModel:
    """The constants of one file.

    Args:
        constants (`Mapping[str, Any]`): The parsed JSON file.
    """

    def __init__(self, constants: Mapping[str, Any]) -> None:
        self.machine: str = constants["machine"]
        self.notes: str = constants.get("notes", "")  # what to know before trusting them
        self._words_per_chunk: float = constants["words_per_chunk"]
        check_value("words_per_chunk", self._words_per_chunk, Positive)
        self._parts = _parts(constants["parts"])
        # Kind -> the preset that was measured, or None for one that is charged by its parameters, and its parts.
        self._models: dict[str, tuple[str | None, dict[str, Part]]] = {
            kind: (model.get("preset"), _parts(model["parts"])) for kind, model in constants["context_models"].items()
        }

    @classmethod
    def load(cls, path: Path = SHIPPED) -> "CostModel":
        """Read the constants from a file."""
        try:
            return cls(json.loads(path.read_text("utf-8")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, UserError) as error:
            raise UserError(
                f"{str(path)!r} holds no constants ({error!r}); write them with python -m benchmarks.bench_costs"
            ) from error

    def estimate(self, workload: Workload, context_model: str, preset: str) -> list[Cost]:
        """Return the costs of all parts, in the order in which they run."""
        if context_model not in self._models:
            raise UserError(
                f"no constants were measured for the context model {context_model!r}; "
                f"expected one of {', '.join(self._models)}"
            )
        measured, own_parts = self._models[context_model]
        chunks = workload.words / self._words_per_chunk + workload.documents / 2
        quantities = {
            "documents": workload.documents,
            "words": workload.words,
            "pairs": workload.pairs,
            "pairs * chunks": workload.pairs * chunks,
            "parameters": workload.parameters,
            "pairs * parameters": workload.pairs * workload.parameters,
        }
        factor = 1.0 if measured is None else _work(context_model, preset) / _work(context_model, measured)
        parts = [(name, part, 1.0) for name, part in self._parts.items()]
        parts += [(name, part, factor) for name, part in own_parts.items()]
        return [_cost(name, part, quantities, workload.cores, factor) for name, part, factor in parts]


def _parts(parts: Mapping[str, Any]) -> dict[str, Part]:
    return {name: Part(**part) for name, part in parts.items()}


def _work(context_model: str, preset: str) -> float:
    """Return a measure of the work of a context model for each token."""
    sizes = preset_sizes(preset, PRESET_PARTS[context_model])
    hidden: float = sizes["hidden_size"]
    return sizes["layers"] * hidden**2 if "layers" in sizes else hidden


def _cost(name: str, part: Part, quantities: Mapping[str, float], cores: int, factor: float) -> Cost:
    used = cores if part.parallel else 1

    def total(rates: Mapping[str, float]) -> float:
        return float(sum(rate * quantities.get(quantity, 1) for quantity, rate in rates.items()))

    start = part.seconds.get("start", 0)
    return Cost(
        name, used, start + factor * (total(part.seconds) - start) / used, total(part.memory), total(part.disk)
    )
