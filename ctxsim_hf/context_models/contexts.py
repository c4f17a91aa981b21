"""Contexts as a context model gets them: as text, as tokens of its tokenizer, and with what an index keeps of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from transformers import TokenizersBackend

from ctxsim_hf.text.chunks import Context
from ctxsim_hf.text.tokenized import TokenizedSentences, tokenize_sentences


class SentenceStore(Protocol):
    """Numbered sentences, in memory or in an index."""

    def texts(self, numbers: np.ndarray) -> list[str]: ...

    def tokens(self, numbers: np.ndarray, tokenizer: TokenizersBackend) -> TokenizedSentences: ...


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
    """The sides of contexts as places among tokenised sentences."""

    sentences: TokenizedSentences
    left: np.ndarray  # (contexts, width) into sentences, nearest first, -1 for none
    right: np.ndarray


@dataclass(frozen=True)
class Contexts:
    store: SentenceStore
    left: np.ndarray  # (contexts, width): numbers of sentences, nearest first, -1 for none
    right: np.ndarray
    # What a model's `stored` gave for these contexts when they were indexed, by name; empty for others.
    stored: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.left)

    @classmethod
    def from_texts(cls, contexts: Sequence[Context]) -> "Contexts":
        """Make contexts of texts, which no index keeps anything of."""
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
        """Return the left and the right sentences of each context, in reading order.

        Args:
            width (`int`, *optional*): Sentences on each side at most. None gives all that there are.
        """
        present, left, right = self._present(width)
        sentences = self.store.texts(present)
        return [
            ([sentences[place] for place in one[::-1] if place >= 0], [sentences[p] for p in other if p >= 0])
            for one, other in zip(left.tolist(), right.tolist(), strict=True)
        ]

    def tokens(self, tokenizer: TokenizersBackend, width: int) -> ContextTokens:
        """Return the contexts in tokens, which an index may have already if this tokenizer is its own."""
        present, left, right = self._present(width)
        return ContextTokens(self.store.tokens(present, tokenizer), left, right)

    def _present(self, width: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The sentences that stand in the sides, each once, and the sides as places among them."""
        stacked = np.stack([self.left[:, :width], self.right[:, :width]])
        present, places = np.unique(stacked, return_inverse=True)
        if len(present) and present[0] == -1:
            present, places = present[1:], places - 1
        left, right = places.reshape(stacked.shape)
        return present, left, right
