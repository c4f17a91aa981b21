"""What each term of the fit score counts; see origin/fit_score.py. Apart from it, since flags need no torch."""

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
        validate(self)
        if not any(self.active.values()):
            raise UserError("every weight of the fit score is 0; at least one term must count")

    @classmethod
    def default_for(cls, answered: Collection[str]) -> "ScoreWeights":
        """Weigh the sides, which measured best, as far as models answer them; else whatever they answer."""
        counted = {"left", "right"} & set(answered) or set(answered)
        return cls(**{term: float(term in counted) for term in TERMS})

    @property
    def active(self) -> dict[str, float]:
        """The terms that count, in the order of Eq. 3."""
        return {name: weight for name, weight in asdict(self).items() if weight}

    def combine(self, terms: Mapping[str, np.ndarray]) -> np.ndarray:
        """Add up S from its terms."""
        return np.sum([weight * terms[term] for term, weight in self.active.items()], axis=0)
