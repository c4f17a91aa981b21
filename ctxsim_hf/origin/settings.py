"""Every choice that shapes an Origin score, apart from the models and the index. Kept in an origin folder as
origin.json; whoever opens the folder may override any of them. docs/experiments.md: how the defaults were chosen."""

import json
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
from annotated_types import Ge

from ctxsim_hf.origin.comparison import MODES, RIDGE
from ctxsim_hf.origin.score_weights import ScoreWeights
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.validation import Count, NonNegative, OneOf, Positive, Seed, validate

Scores = TypeVar("Scores", float, np.ndarray)

SETTINGS_FILE = "origin.json"
STRATEGIES = ("two_step", "random", "no_diversity")


@dataclass(frozen=True, kw_only=True)
class OriginSettings:
    r"""
    Args:
        mode (`str`): How score vectors are compared: `cosine`, `centered`, `zscore` or `whitened`.
        weights (`ScoreWeights`): Of the four terms of Eq. 3.
        num_contexts (`int`): Contexts in the set of one sentence.
        screen_chunks (`int`): Chunks that TF-IDF lets through for one sentence; a set holds one context of each at
            most. The paper's settings are 20,000 chunks, 500 contexts, weights of 1 and the mode `cosine`.
        rerank_candidates (`int`): Contexts that the discriminator lets through, for each of `num_contexts`.
        strategy (`str`): `two_step`; or, to measure what it is worth, `random` (no retrieval) or `no_diversity` (any
            number of contexts from one chunk, however alike).
        max_jaccard (`float`): Two contexts are in one set only if the sentences before the gap share less than this.
        background_size (`int`): Background sentences that count, at most those kept in the folder.
        ridge (`float`): Of `whitened`.
        lexical_weight (`float`): Weight of the cosine of the two sentences' words (`LetterCosine`) beside the
            similarity by contexts, whose weight is 1; the similarity is their weighted mean.
        seed (`int`): Of the strategy `random` and of the context spread.
    """

    mode: Annotated[str, OneOf(MODES)] = "whitened"
    weights: ScoreWeights = field(default_factory=lambda: ScoreWeights(discriminative=0, sentence=0))
    num_contexts: Count = 100
    screen_chunks: Count = 500
    rerank_candidates: Count = 4
    strategy: Annotated[str, OneOf(STRATEGIES)] = "two_step"
    max_jaccard: NonNegative = 0.5
    background_size: Annotated[int, Ge(2)] = 256
    ridge: Positive = RIDGE
    lexical_weight: NonNegative = 0.0
    seed: Seed = 0

    def __post_init__(self) -> None:
        validate(self)

    def with_lexical(self, by_contexts: Scores, lexical: Scores) -> Scores:
        """The similarity by contexts, and that by words where it has a weight."""
        if not self.lexical_weight:
            return by_contexts
        return (by_contexts + self.lexical_weight * lexical) / (1 + self.lexical_weight)

    def with_lexical_spread(self, of_contexts: Scores) -> Scores:
        """The spread of `with_lexical`, whose words stay as they are when other contexts are drawn."""
        return of_contexts / (1 + self.lexical_weight)

    def override(self, **values: Any) -> "OriginSettings":
        """These settings with the given values in their place; None leaves one as it is."""
        known = {f.name for f in fields(self)}
        if unknown := values.keys() - known:
            raise UserError(
                f"unknown setting {', '.join(sorted(unknown))}; expected one of {', '.join(sorted(known))}"
            )
        return replace(self, **{name: value for name, value in values.items() if value is not None})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def load(cls, folder: Path) -> "OriginSettings":
        values = json.loads((folder / SETTINGS_FILE).read_text("utf-8"))
        return cls(**values | {"weights": ScoreWeights(**values["weights"])})
