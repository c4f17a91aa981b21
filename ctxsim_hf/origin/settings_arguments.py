"""The settings of an origin folder as flags, for every command that opens one."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge
from transformers.hf_argparser import HfArg

from ctxsim_hf.origin.comparison import MODES
from ctxsim_hf.origin.score_weights import TERMS, ScoreWeights
from ctxsim_hf.origin.settings import STRATEGIES
from ctxsim_hf.runtime.arguments import Arguments
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.validation import Count, NonNegative, OneOf

if TYPE_CHECKING:
    from ctxsim_hf.origin.similarity import OriginSimilarity


@dataclass(kw_only=True)
class SettingsArguments(Arguments):
    """What to change of the settings of an origin folder."""

    mode: Annotated[str, OneOf(MODES)] | None = HfArg(
        default=None, help="Compare by cosine, centered, zscore or whitened."
    )
    weights: list[float] | None = HfArg(default=None, help=f"Weights of the terms {', '.join(TERMS)}.")
    num_contexts: Count | None = HfArg(default=None, help="Contexts of each sentence.")
    screen_chunks: Count | None = HfArg(default=None, help="Chunks that TF-IDF lets through.")
    strategy: Annotated[str, OneOf(STRATEGIES)] | None = HfArg(
        default=None, help="Choose contexts by two_step, random or no_diversity."
    )
    background_size: Annotated[int, Ge(2)] | None = HfArg(default=None, help="Background sentences that count.")
    lexical_weight: NonNegative | None = HfArg(
        default=None, help="Weight of the words themselves; that of contexts is 1."
    )
    cache: str | None = HfArg(default=None, help="Folder to keep context sets in from run to run.")

    def open_origin(self, origin: str) -> "OriginSimilarity":
        from ctxsim_hf.origin.similarity import OriginSimilarity  # and with it torch, which takes seconds

        weights = self.weights
        if weights is not None and len(weights) != len(TERMS):
            raise UserError(f"--weights takes {len(TERMS)} numbers ({', '.join(TERMS)}), got {len(weights)}")
        return OriginSimilarity.from_pretrained(
            origin,
            cache_folder=self.cache,
            mode=self.mode,
            weights=None if weights is None else ScoreWeights(*weights),
            num_contexts=self.num_contexts,
            screen_chunks=self.screen_chunks,
            strategy=self.strategy,
            background_size=self.background_size,
            lexical_weight=self.lexical_weight,
        )
