"""Hold every setting of an Origin score: all it depends on besides the models and the index.

An origin folder keeps them in origin.json, and any of them can be overridden when it is opened. docs/experiments.md
says how the defaults were chosen.
"""

import json
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge

from ctxsim_hf.context_models.score_weights import ScoreWeights
from ctxsim_hf.origin.chosen_weights import ChosenWeights
from ctxsim_hf.origin.comparison import COMPARISONS, RIDGE
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.validation import Count, CountOrZero, NonNegative, OneOf, Positive, Seed, validate

SETTINGS_FILE = "origin.json"
STRATEGIES = ("two_step", "random", "no_diversity")


@dataclass(frozen=True, kw_only=True)
class OriginSettings:
    """The settings of an origin.

    Args:
        signals (`dict[str, float]`): Weights of the signals: `contexts`, `cloze`, `words`, `encoder`, or a registered
            one. See signals.py for what a weight means.
        compare_by (`str`): How score vectors are compared: `cosine`, `centered`, `zscore` or `whitened`.
        weights (`ScoreWeights`): Weights of the four terms of Eq. 3.
        num_contexts (`int`): Number of contexts in the set of one sentence.
        screen_chunks (`int`): Number of chunks that TF-IDF selects for one sentence; a set holds at most one context
            of each. The paper's settings are 20,000 chunks, 500 contexts, weights of 1 and `cosine`.
        rerank_candidates (`int`): Number of candidates that are scored for each of `num_contexts`.
        strategy (`str`): `two_step`; or, for ablations, `random` (no retrieval) or `no_diversity` (any number of
            contexts from one chunk, however alike).
        max_jaccard (`float`): Two contexts are in one set only if the sentences before the gap share less than this.
        background_size (`int`): Number of background sentences that contexts use, at most those kept in the folder.
        ridge (`float`): Regularisation of `whitened`.
        cloze_power (`float`, *optional*): How far the states of the signal `cloze` are whitened, from 0 to 1. None
            leaves it to the context model.
        cloze_ridge (`float`): Regularisation of that whitening, as a share of the mean eigenvalue.
        cloze_neighbours (`int`): Background sentences that say how near a sentence is to everything, which is taken
            off; 0 leaves the cosines as they are.
        seed (`int`): Random seed of the strategy `random` and of the spread.
    """

    signals: dict[str, NonNegative] = field(default_factory=lambda: {"contexts": 1.0})
    compare_by: Annotated[str, OneOf(COMPARISONS)] = "whitened"
    weights: ScoreWeights = field(default_factory=lambda: ScoreWeights(discriminative=0, sentence=0))
    num_contexts: Count = 100
    screen_chunks: Count = 500
    rerank_candidates: Count = 4
    strategy: Annotated[str, OneOf(STRATEGIES)] = "two_step"
    max_jaccard: NonNegative = 0.5
    background_size: Annotated[int, Ge(2)] = 256
    ridge: Positive = RIDGE
    cloze_power: NonNegative | None = None
    cloze_ridge: Positive = 0.01
    cloze_neighbours: CountOrZero = 3
    seed: Seed = 0

    def __post_init__(self) -> None:
        validate(self)
        if not self.active_signals:
            raise UserError("every signal has the weight 0; at least one must count")

    @property
    def active_signals(self) -> dict[str, float]:
        """The signals that have a weight."""
        return {name: weight for name, weight in self.signals.items() if weight}

    def override(self, **values: Any) -> "OriginSettings":
        """Return these settings with some values replaced; None leaves a value as it is."""
        known = {f.name for f in fields(self)}
        if unknown := values.keys() - known:
            raise UserError(
                f"unknown setting {', '.join(sorted(unknown))}; expected one of {', '.join(sorted(known))}"
            )
        return replace(self, **{name: value for name, value in values.items() if value is not None})

    def to_json(self) -> dict[str, Any]:
        """Return the settings as origin.json holds them."""
        return asdict(self)

    @classmethod
    def load(cls, folder: Path) -> "OriginSettings":
        """Read origin.json, and the weights that were chosen later, if any."""
        values = json.loads((folder / SETTINGS_FILE).read_text("utf-8"))
        if (chosen := ChosenWeights.load(folder)) is not None:
            values["signals"] = chosen.signals
        return cls(**values | {"weights": ScoreWeights(**values["weights"])})
