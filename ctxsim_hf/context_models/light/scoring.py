"""The light generator as a context model: the three generative terms of Eq. 3, each a matrix product."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
import torch
from transformers import TokenizersBackend

from ctxsim_hf.context_models.base import ContextModel
from ctxsim_hf.context_models.contexts import Contexts
from ctxsim_hf.context_models.light.modeling import LightContextGeneratorModel, SentenceFactors
from ctxsim_hf.context_models.sentence_tensors import SentenceTensors, SpecialIds
from ctxsim_hf.context_models.terms import DIRECTIONS
from ctxsim_hf.text.fast_tokenizer import open_tokenizer
from ctxsim_hf.text.tokenized import TokenizedSentences, tokenize_sentences

SENTENCES_AT_ONCE = 1000  # in memory with their padding
NORMALISERS = "normalisers"  # of the direction `sentence`, whose source is the context alone


class LightSentences:
    """Sentences as targets, and as sources with their normalisers, which are computed on first use."""

    def __init__(self, model: LightContextGeneratorModel, factors: SentenceFactors) -> None:
        self.model, self.factors = model, factors
        self._sources: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}

    def source(self, direction: str) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the source vectors for a direction, and their normalisers."""
        if direction not in self._sources:
            source = self.model.source(direction, sentence=self.factors)
            self._sources[direction] = source, self.model.normalisers(source)
        return self._sources[direction]


class LightContexts:
    """The sides of contexts as targets, and the contexts as sources with their normalisers, computed on first use."""

    def __init__(
        self, model: LightContextGeneratorModel, sides: dict[str, SentenceFactors], normalisers: np.ndarray | None
    ) -> None:
        self.model, self.sides, self._stored = model, sides, normalisers

    @cached_property
    def source(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the source vectors for the direction `sentence`, and their normalisers."""
        source = self.model.source("sentence", **self.sides)
        if self._stored is None:
            return source, self.model.normalisers(source)
        return source, torch.from_numpy(self._stored).to(source.device)


class LightContextModel(ContextModel):
    """Answers the terms `sentence`, `left` and `right`."""

    terms = DIRECTIONS
    stores = True
    cloze_power = 0.5  # best for these vectors on the validation split of STSb: see docs/experiments.md

    def __init__(self, model: LightContextGeneratorModel, tokenizer: TokenizersBackend) -> None:
        self.model, self.tokenizer, self.width = model.eval(), tokenizer, model.config.width
        self.tensors = SentenceTensors(SpecialIds.of(tokenizer), model.config.max_sentence_tokens)

    @classmethod
    def load(cls, folder: Path, device: str) -> Self:
        return cls(LightContextGeneratorModel.from_pretrained(folder).to(device), open_tokenizer(folder))

    @torch.inference_mode()
    def prepare_sentences(self, sentences: Sequence[str]) -> LightSentences:
        return LightSentences(self.model, self._factors(tokenize_sentences(self.tokenizer, sentences)))

    @torch.inference_mode()
    def prepare_contexts(self, contexts: Contexts) -> LightContexts:
        tokens = contexts.tokens(self.tokenizer, self.width)
        factors = self._factors(tokens.sentences)
        places = {"left": tokens.left, "right": tokens.right}
        sides = {name: factors.side(torch.from_numpy(place).to(self.model.device)) for name, place in places.items()}
        return LightContexts(self.model, sides, contexts.stored.get(NORMALISERS))

    @torch.inference_mode()
    def score(self, term: str, sentences: LightSentences, contexts: LightContexts) -> np.ndarray:
        if term == "sentence":
            target = sentences.factors
            scores = self.model.log_prob_matrix(*contexts.source, target).T / target.length[:, None]
        else:
            target = contexts.sides[term]
            scores = self.model.log_prob_matrix(*sentences.source(term), target) / target.length
        found: np.ndarray = scores.cpu().numpy()
        return found

    @torch.inference_mode()
    def stored(self, contexts: Contexts) -> dict[str, np.ndarray]:
        return {NORMALISERS: self.prepare_contexts(contexts).source[1].cpu().numpy()}

    @torch.inference_mode()
    def vectors(self, sentences: Sequence[str]) -> np.ndarray:
        """Return the source of each sentence before the maps of its directions: (sentences, 1, hidden). The logits of
        all words in its contexts are linear in it."""
        blocks = [
            sentences[start : start + SENTENCES_AT_ONCE] for start in range(0, len(sentences), SENTENCES_AT_ONCE)
        ]
        means = [self._factors(tokenize_sentences(self.tokenizer, block)).mean() for block in blocks]
        found: np.ndarray = torch.cat(means)[:, None].float().cpu().numpy()
        return found

    def _factors(self, sentences: TokenizedSentences) -> SentenceFactors:
        return self.model.encode_sentences(*self.tensors(sentences, self.model.device))
