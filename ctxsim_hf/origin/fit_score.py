"""Score how well sentences fit contexts: the fit score S (Eq. 3).

    S(s, c) =  w1 * log p(y=1 | s, c)                  discriminative
             + w2 * log p(s | c_<, c_>) / len(s)       sentence
             + w3 * log p(c_< | s, c_>) / len(c_<)     left
             + w4 * log p(c_> | c_<, s) / len(c_>)     right

A length is the number of target tokens, including end marks. Each term is answered by one [`ContextModel`].
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ctxsim_hf.context_models.base import ContextModel
from ctxsim_hf.context_models.contexts import Contexts
from ctxsim_hf.context_models.score_weights import ScoreWeights
from ctxsim_hf.context_models.terms import TERMS
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.chunks import Context

Prepared = list[Any]  # what each model made of the same sentences or contexts


class ContextSource(Protocol):
    """Contexts of an index, which may store something of them for each model."""

    def for_model(self, name: str) -> Contexts: ...


def answered_terms(models: Mapping[str, ContextModel]) -> dict[str, str]:
    """Return the name of the model that answers each term; refuse two models for one term."""
    answered: dict[str, str] = {}
    for name, model in models.items():
        for term in model.terms:
            if term in answered:
                raise UserError(
                    f"two context models answer the term {term!r}: {answered[term]} and {name}; leave one out"
                )
            answered[term] = name
    return answered


class ContextScorer:
    """Combine context models into the fit score.

    Args:
        models (`Mapping[str, ContextModel]`): Models by name, which together answer every term that has a weight.
        weights (`ScoreWeights`, *optional*): Weights of the terms. None gives left and right the weight 1 where a
            model answers them.
    """

    def __init__(self, models: Mapping[str, ContextModel], weights: ScoreWeights | None = None) -> None:
        answered = answered_terms(models)
        self.weights = weights or ScoreWeights.default_for(answered)
        if missing := [term for term in self.weights.active if term not in answered]:
            raise UserError(
                f"no model answers the term {', '.join(missing)}; add one, or give the term the weight 0 "
                f"(there are models for: {', '.join(t for t in TERMS if t in answered) or 'none'})"
            )
        # A model whose terms have no weight does not even prepare.
        self.models = {name: model for name, model in models.items() if set(model.terms) & self.weights.active.keys()}

    def prepare_sentences(self, sentences: Sequence[str]) -> Prepared:
        """Return what each model makes of the sentences."""
        return [model.prepare_sentences(sentences) for model in self.models.values()]

    def prepare_contexts(self, contexts: ContextSource | Sequence[Context]) -> Prepared:
        """Return what each model makes of the contexts."""
        if isinstance(contexts, Sequence):
            texts = Contexts.from_texts(contexts)
            return [model.prepare_contexts(texts) for model in self.models.values()]
        return [model.prepare_contexts(contexts.for_model(name)) for name, model in self.models.items()]

    def terms(self, sentences: Prepared, contexts: Prepared) -> dict[str, np.ndarray]:
        """Return the unweighted terms that have a weight, each (sentences, contexts)."""
        found: dict[str, np.ndarray] = {}
        for model, of_sentences, of_contexts in zip(self.models.values(), sentences, contexts, strict=True):
            for term in model.terms:
                if term in self.weights.active:
                    found[term] = model.score(term, of_sentences, of_contexts).astype(np.float64)
        return {term: found[term] for term in self.weights.active}  # in the order of Eq. 3

    def score(self, sentences: Sequence[str], contexts: ContextSource | Sequence[Context]) -> np.ndarray:
        """Return S of every sentence in every context, (sentences, contexts)."""
        return self.weights.combine(self.terms(self.prepare_sentences(sentences), self.prepare_contexts(contexts)))
