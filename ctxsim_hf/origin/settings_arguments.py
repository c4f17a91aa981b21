"""Define the settings of an origin as flags, for every command that opens one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Ge
from transformers.hf_argparser import HfArg

from ctxsim_hf.context_models.score_weights import ScoreWeights
from ctxsim_hf.context_models.terms import TERMS
from ctxsim_hf.origin.comparison import COMPARISONS
from ctxsim_hf.origin.settings import STRATEGIES
from ctxsim_hf.runtime.arguments import Arguments
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.validation import Count, NonNegative, OneOf, check_value

if TYPE_CHECKING:
    from ctxsim_hf.origin.similarity import OriginSimilarity


@dataclass(kw_only=True)
class OverrideArguments(Arguments):
    """Settings of an origin to override."""

    compare_by: Annotated[str, OneOf(COMPARISONS)] | None = HfArg(
        default=None, help="Compare by cosine, centered, zscore or whitened."
    )
    weights: list[float] | None = HfArg(default=None, help=f"Weights of the terms {', '.join(TERMS)}.")
    num_contexts: Count | None = HfArg(default=None, help="Number of contexts of each sentence.")
    screen_chunks: Count | None = HfArg(default=None, help="Number of chunks that TF-IDF selects for a sentence.")
    strategy: Annotated[str, OneOf(STRATEGIES)] | None = HfArg(
        default=None, help="Choose contexts by two_step, random or no_diversity."
    )
    background_size: Annotated[int, Ge(2)] | None = HfArg(default=None, help="Number of background sentences to use.")
    signals: list[str] | None = HfArg(default=None, help="Weights of signals, such as contexts=1 words=0.5 encoder=1.")
    lexical_weight: NonNegative | None = HfArg(default=None, help="Short for --signals contexts=1 words=W.")
    cache: str | None = HfArg(
        default=None, help="Folder that keeps context sets and the vectors of a language model from run to run."
    )

    def overrides(self) -> dict[str, Any]:
        """Return fields of [`OriginSettings`] and their new values; None for those that stay."""
        weights = self.weights
        if weights is not None and len(weights) != len(TERMS):
            raise UserError(f"--weights takes {len(TERMS)} numbers ({', '.join(TERMS)}), got {len(weights)}")
        return {
            "signals": signal_weights(self.signals, self.lexical_weight),
            "compare_by": self.compare_by,
            "weights": None if weights is None else ScoreWeights(*weights),
            "num_contexts": self.num_contexts,
            "screen_chunks": self.screen_chunks,
            "strategy": self.strategy,
            "background_size": self.background_size,
        }

    def open_origin(self, origin: str, device: str | None = None) -> "OriginSimilarity":
        """Open an origin with these settings; None as the device takes a GPU if there is one."""
        from ctxsim_hf.origin.similarity import OriginSimilarity  # and with it torch, which takes seconds

        return OriginSimilarity.from_pretrained(origin, device=device, cache_folder=self.cache, **self.overrides())


@dataclass(kw_only=True)
class SettingsArguments(OverrideArguments):
    """The same, with --mode as an alias of --compare-by, for commands in which --mode has no other meaning."""

    compare_by: Annotated[str, OneOf(COMPARISONS)] | None = HfArg(
        default=None, aliases=["--mode"], help="Compare by cosine, centered, zscore or whitened."
    )


def signal_weights(signals: Sequence[str] | None, lexical_weight: float | None) -> dict[str, float] | None:
    """Parse `name=weight` of each signal, or expand --lexical-weight; return None if neither is given."""
    if lexical_weight is not None:
        if signals is not None:
            raise UserError("--lexical-weight is short for --signals contexts=1 words=W; leave one of them out")
        return {"contexts": 1.0, "words": lexical_weight}
    if signals is None:
        return None
    weights: dict[str, float] = {}
    for signal in signals:
        name, _, weight = signal.partition("=")
        try:
            weights[name] = float(weight)
        except ValueError:
            raise UserError(f"expected signals as NAME=WEIGHT, such as words=0.5, got {signal!r}") from None
    check_value("--signals", weights, dict[str, NonNegative])
    return weights
