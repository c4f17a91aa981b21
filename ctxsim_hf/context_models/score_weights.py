"""The weights of the terms of the fit score; see origin/fit_score.py. A module of its own, so that flags need no
torch."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass

import numpy as np

from ctxsim_hf.context_models.terms import TERMS
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.validation import validate


@dataclass(frozen=True)
class ScoreWeights:
    """The weights of Eq. 3. A term of weight 0 is not computed."""

    discriminative: float = 1.0
    sentence: float = 1.0
    left: float = 1.0
    right: float = 1.0

    def __post_init__(self) -> None:
        validate(self)
        if not any(self.active.values()):
            raise UserError("expected at least one term of the fit score with a weight other than 0, got none")

    @classmethod
    def default_for(cls, answered: Collection[str]) -> "ScoreWeights":
        """Weigh `left` and `right`, which measured best, as far as models answer them, or else all answered terms."""
        weighted = {"left", "right"} & set(answered) or set(answered)
        return cls(**{term: float(term in weighted) for term in TERMS})

    @property
    def active(self) -> dict[str, float]:
        """Return the terms with a weight other than 0, in the order of Eq. 3."""
        return {name: weight for name, weight in asdict(self).items() if weight}

    def combine(self, terms: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return S, the weighted sum of its terms."""
        return np.sum([weight * terms[term] for term, weight in self.active.items()], axis=0)
