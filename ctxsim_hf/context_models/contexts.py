"""Contexts as context models read them: as text, as tokens, and with the arrays that an index keeps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from transformers import TokenizersBackend

from ctxsim_hf.text.chunks import Context
from ctxsim_hf.text.tokenized import TokenizedSentences, tokenize_sentences


class SentenceStore(Protocol):
    """Numbered sentences, in memory or in an index."""

    def texts(self, numbers: np.ndarray) -> list[str]:
        """Return the texts of some sentences."""
        ...

    def tokens(self, numbers: np.ndarray, tokenizer: TokenizersBackend) -> TokenizedSentences:
        """Return the tokens of some sentences."""
        ...


@dataclass(frozen=True)
class TextStore:
    """Sentences in memory."""

    sentences: Sequence[str]

    def texts(self, numbers: np.ndarray) -> list[str]:
        return [self.sentences[number] for number in numbers.tolist()]

    def tokens(self, numbers: np.ndarray, tokenizer: TokenizersBackend) -> TokenizedSentences:
        return tokenize_sentences(tokenizer, self.texts(numbers))


@dataclass(frozen=True)
class ContextTokens:
    """The sides of contexts, as indices into tokenised sentences."""

    sentences: TokenizedSentences
    left: np.ndarray  # (contexts, width) into sentences, nearest first, -1 for none
    right: np.ndarray


@dataclass(frozen=True)
class Contexts:
    """Contexts by the numbers of their sentences in a store."""

    store: SentenceStore
    left: np.ndarray  # (contexts, width): numbers of sentences, nearest first, -1 for none
    right: np.ndarray
    # The arrays that `ContextModel.stored` gave for these contexts when they were indexed; empty if they were not.
    stored: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.left)

    @classmethod
    def from_texts(cls, contexts: Sequence[Context]) -> "Contexts":
        """Make contexts that are not in an index."""
        width = max((len(side) for context in contexts for side in (context.left, context.right)), default=1)
        sentences: list[str] = []
        sides = np.full((2, len(contexts), width), -1, dtype=np.int64)
        for row, context in enumerate(contexts):
            for side, nearest_first in enumerate((context.left[::-1], context.right)):
                for column, text in enumerate(nearest_first):
                    sides[side, row, column] = len(sentences)
                    sentences.append(text)
        return cls(TextStore(sentences), *sides)

    def texts(self, width: int | None = None) -> list[tuple[list[str], list[str]]]:
        """Return the left and right sentences of each context, in reading order.

        Args:
            width (`int`, *optional*): Maximum number of sentences on each side. None gives all.
        """
        present, left, right = self._present(width)
        sentences = self.store.texts(present)
        return [
            ([sentences[place] for place in one[::-1] if place >= 0], [sentences[p] for p in other if p >= 0])
            for one, other in zip(left.tolist(), right.tolist(), strict=True)
        ]

    def tokens(self, tokenizer: TokenizersBackend, width: int) -> ContextTokens:
        """Return the contexts in tokens. An index has those of its own tokenizer stored."""
        present, left, right = self._present(width)
        return ContextTokens(self.store.tokens(present, tokenizer), left, right)

    def _present(self, width: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the distinct sentences of the sides, and the sides as indices into them."""
        stacked = np.stack([self.left[:, :width], self.right[:, :width]])
        present, places = np.unique(stacked, return_inverse=True)
        if len(present) and present[0] == -1:
            present, places = present[1:], places - 1
        left, right = places.reshape(stacked.shape)
        return present, left, right
