"""The door for context models: what answers one or more terms of the fit score S (Eq. 3).

A context model gets text, owns its tokenizer, and lives in a folder of its own whose config.json has a `model_type`;
by that type the registry finds its class again. Nothing else in the package tells context models apart.
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
    """Answers `terms`, for many sentences and many contexts at once.

    What a term needs to know of a sentence alone, or of a context alone, is prepared once and used for every score it
    takes part in.
    """

    terms: tuple[str, ...]
    width: int  # sentences on each side of a context that it reads
    files: ClassVar[tuple[str, ...]] = (*MODEL_FILES, *TOKENIZER_FILES)  # of its folder that an origin copies
    is_slow: ClassVar[bool] = False  # a score takes milliseconds, so that none is asked for without need
    stores: ClassVar[bool] = False  # whether an index keeps something of every context for it: see `stored`

    @classmethod
    @abstractmethod
    def load(cls, folder: Path, device: str) -> Self:
        """Open the model in a folder."""

    @abstractmethod
    def prepare_sentences(self, sentences: Sequence[str]) -> Any:
        """Return whatever `score` wants to know of sentences."""

    @abstractmethod
    def prepare_contexts(self, contexts: Contexts) -> Any:
        """Return whatever `score` wants to know of contexts."""

    @abstractmethod
    def score(self, term: str, sentences: Any, contexts: Any) -> np.ndarray:
        """Return a term without its weight, per target token: (sentences, contexts)."""

    def stored(self, contexts: Contexts) -> dict[str, np.ndarray]:
        """Return arrays that an index should keep, by name, a row for each context. `prepare_contexts` finds them in
        `contexts.stored`."""
        return {}


@runtime_checkable
class Ranker(Protocol):
    """A context model that can put many contexts in order cheaply, before the fit score looks at the best of them."""

    def prepare_sentences(self, sentences: Sequence[str]) -> Any: ...

    def rank(self, sentences: Any, contexts: Contexts) -> np.ndarray:
        """Return how promising each context is for each sentence: (sentences, contexts)."""
        ...
