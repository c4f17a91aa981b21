"""The base class of context models, each of which answers one or more terms of the fit score S (Eq. 3).

A context model gets text, owns its tokenizer, and is saved in a folder of its own with a `model_type` in its
config.json, by which the registry finds its class. Nothing else in the package tells context models apart.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from ctxsim_hf.context_models.contexts import Contexts
from ctxsim_hf.text.fast_tokenizer import TOKENIZER_FILES

MODEL_FILES = ("config.json", "generation_config.json", "*.safetensors", "*.safetensors.index.json")


class ContextModel(ABC):
    """A model that answers `terms` of the fit score, for many sentences and many contexts at once.

    What depends on a sentence alone, or on a context alone, is prepared once and used for all of its scores.
    """

    terms: tuple[str, ...]
    width: int  # number of sentences that it reads on each side of a context
    files: ClassVar[tuple[str, ...]] = (*MODEL_FILES, *TOKENIZER_FILES)  # of its folder, which an origin copies
    is_slow: ClassVar[bool] = False  # a score takes milliseconds, so that none is asked for without need
    stores: ClassVar[bool] = False  # whether an index keeps arrays for it: see `stored`
    cloze_power: ClassVar[float] = 0.0  # of one with `vectors`: how far the signal `cloze` whitens them

    @classmethod
    @abstractmethod
    def load(cls, folder: Path, device: str) -> Self:
        """Open the model in a folder."""

    @abstractmethod
    def prepare_sentences(self, sentences: Sequence[str]) -> Any:
        """Return whatever `score` needs to know about sentences."""

    @abstractmethod
    def prepare_contexts(self, contexts: Contexts) -> Any:
        """Return whatever `score` needs to know about contexts."""

    @abstractmethod
    def score(self, term: str, sentences: Any, contexts: Any) -> np.ndarray:
        """Return a term of the fit score, unweighted, per target token: (sentences, contexts)."""

    def stored(self, contexts: Contexts) -> dict[str, np.ndarray]:
        """Return arrays for an index to keep, by name, with a row for each context. `prepare_contexts` finds them in
        `contexts.stored`."""
        return {}


@runtime_checkable
class Ranker(Protocol):
    """A context model that can rank many contexts cheaply, so that only the best get a fit score."""

    def prepare_sentences(self, sentences: Sequence[str]) -> Any: ...

    def rank(self, sentences: Any, contexts: Contexts) -> np.ndarray:
        """Return a rank score of each context for each sentence, higher is better: (sentences, contexts)."""
        ...
