"""How well each of many sentences fits each of many contexts: the fit score S (Eq. 3).

    S(s, c) =  w1 * log p(y=1 | s, c)                  discriminative
             + w2 * log p(s | c_<, c_>) / len(s)       sentence
             + w3 * log p(c_< | s, c_>) / len(c_<)     left
             + w4 * log p(c_> | c_<, s) / len(c_>)     right

A length is the number of target tokens, end marks included. A [`TermScorer`] answers one or more of the four terms;
what a term needs to know of a sentence alone or of a context alone is prepared once and used for every score it takes
part in.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from transformers import TokenizersBackend

from ctxsim_hf.origin.score_weights import TERMS, ScoreWeights
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.chunks import Context
from ctxsim_hf.text.tokenized import TokenizedSentences, tokenize_sentences


@dataclass(frozen=True)
class ContextTokens:
    """Contexts as places in a store of sentences, and what an index may hold of them already."""

    sentences: TokenizedSentences
    left: np.ndarray  # (contexts, width) into sentences, nearest first, -1 for none
    right: np.ndarray
    discriminator_parts: torch.Tensor | None = None  # (contexts, part)
    normalisers: torch.Tensor | None = None  # (contexts,): Z of the light generator's question `sentence`

    def __len__(self) -> int:
        return len(self.left)

    @classmethod
    def from_contexts(cls, contexts: Sequence[Context], tokenizer: TokenizersBackend, width: int) -> "ContextTokens":
        """From texts; of a side with more than `width` sentences the nearest count."""
        texts: list[str] = []
        sides = np.full((2, len(contexts), width), -1, dtype=np.int64)
        for row, context in enumerate(contexts):
            for side, nearest_first in enumerate((context.left[::-1], context.right)):
                for column, text in enumerate(nearest_first[:width]):
                    sides[side, row, column] = len(texts)
                    texts.append(text)
        return cls(tokenize_sentences(tokenizer, texts), *sides)


class TermScorer(Protocol):
    """Answers one or more terms of Eq. 3, for many sentences and many contexts at once."""

    terms: tuple[str, ...]

    def prepare_sentences(self, sentences: TokenizedSentences) -> Any: ...

    def prepare_contexts(self, contexts: ContextTokens) -> Any: ...

    def score(self, term: str, sentences: Any, contexts: Any) -> torch.Tensor:
        """The term without its weight, per target token: (sentences, contexts)."""
        ...


Prepared = list[Any]  # what each scorer made of the same sentences or contexts


class ContextScorer:
    r"""
    Args:
        scorers (`Sequence[TermScorer]`): Together they answer every term that has a weight.
        tokenizer (`TokenizersBackend`): The one all models behind the scorers were trained with.
        width (`int`): Sentences on each side of a context that count.
        weights (`ScoreWeights`, *optional*): By default 1 each.
    """

    def __init__(
        self,
        scorers: Sequence[TermScorer],
        tokenizer: TokenizersBackend,
        width: int = 1,
        weights: ScoreWeights | None = None,
    ) -> None:
        self.tokenizer, self.width = tokenizer, width
        self.weights = weights or ScoreWeights()
        wanted = self.weights.active
        answered = {term for scorer in scorers for term in scorer.terms}
        if missing := [term for term in wanted if term not in answered]:
            raise UserError(
                f"no model answers the term {', '.join(missing)}; add one, or give the term the weight 0 "
                f"(there are models for: {', '.join(t for t in TERMS if t in answered) or 'none'})"
            )
        # A scorer whose terms have no weight is not even asked to prepare.
        self.scorers = [scorer for scorer in scorers if set(scorer.terms) & wanted.keys()]

    def prepare_sentences(self, sentences: Sequence[str]) -> Prepared:
        tokenized = tokenize_sentences(self.tokenizer, sentences)
        return [scorer.prepare_sentences(tokenized) for scorer in self.scorers]

    def prepare_contexts(self, contexts: ContextTokens | Sequence[Context]) -> Prepared:
        if not isinstance(contexts, ContextTokens):
            contexts = ContextTokens.from_contexts(contexts, self.tokenizer, self.width)
        return [scorer.prepare_contexts(contexts) for scorer in self.scorers]

    def terms(self, sentences: Prepared, contexts: Prepared) -> dict[str, np.ndarray]:
        """Each term that has a weight, without it: (sentences, contexts)."""
        found: dict[str, np.ndarray] = {}
        for scorer, of_sentences, of_contexts in zip(self.scorers, sentences, contexts, strict=True):
            for term in scorer.terms:
                if term in self.weights.active:
                    found[term] = scorer.score(term, of_sentences, of_contexts).double().numpy()
        return {term: found[term] for term in self.weights.active}  # in the order of Eq. 3

    def score(self, sentences: Sequence[str], contexts: ContextTokens | Sequence[Context]) -> np.ndarray:
        """S of every sentence in every context, (sentences, contexts)."""
        return self.weights.combine(self.terms(self.prepare_sentences(sentences), self.prepare_contexts(contexts)))
