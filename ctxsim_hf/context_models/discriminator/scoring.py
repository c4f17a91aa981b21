"""The discriminator as a context model: log p(y=1 | s, c_<, c_>), the first term of Eq. 3, and a ranker of contexts.

An index keeps the context's part of the hidden layer of the head, as the sum of two half-precision numbers. Ranking
reads only the first, which is half of the bytes; together they are as precise as single precision.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
import torch
from torch.nn.functional import logsigmoid
from transformers import TokenizersBackend

from ctxsim_hf.context_models.base import ContextModel
from ctxsim_hf.context_models.contexts import Contexts
from ctxsim_hf.context_models.discriminator.modeling import ContextDiscriminatorModel
from ctxsim_hf.context_models.sentence_tensors import SentenceTensors, SpecialIds
from ctxsim_hf.text.fast_tokenizer import open_tokenizer
from ctxsim_hf.text.tokenized import TokenizedSentences, tokenize_sentences

PARTS, PARTS_REST = "parts", "parts_rest"
NUMBERS_PER_BLOCK = 1 << 22  # size of (sentences, contexts, part) that is in memory at a time
RANKED_PER_BLOCK = 1 << 11  # contexts that are ranked at a time


class DiscriminatorContextModel(ContextModel):
    """Answers the term `discriminative`, and ranks contexts."""

    terms = ("discriminative",)
    stores = True

    def __init__(self, model: ContextDiscriminatorModel, tokenizer: TokenizersBackend) -> None:
        self.model, self.tokenizer, self.width = model.eval(), tokenizer, model.config.width
        self.tensors = SentenceTensors(SpecialIds.of(tokenizer), model.config.max_sentence_tokens)

    @classmethod
    def load(cls, folder: Path, device: str) -> Self:
        return cls(ContextDiscriminatorModel.from_pretrained(folder).to(device), open_tokenizer(folder))

    @torch.inference_mode()
    def prepare_sentences(self, sentences: Sequence[str]) -> torch.Tensor:
        return self.model.sentence_part(self._vectors(tokenize_sentences(self.tokenizer, sentences)))

    @torch.inference_mode()
    def prepare_contexts(self, contexts: Contexts) -> torch.Tensor:
        if PARTS in contexts.stored:
            parts = contexts.stored[PARTS].astype(np.float32) + contexts.stored[PARTS_REST].astype(np.float32)
            return torch.from_numpy(parts).to(self.model.device)
        tokens = contexts.tokens(self.tokenizer, self.width)
        vectors = self._vectors(tokens.sentences)
        sides = (torch.from_numpy(side).to(vectors.device) for side in (tokens.left, tokens.right))
        return self.model.context_part(
            *(self.model.side_vector(vectors[side.clamp(min=0)], side >= 0) for side in sides)
        )

    @torch.inference_mode()
    def score(self, term: str, sentences: torch.Tensor, contexts: torch.Tensor) -> np.ndarray:
        rows = max(1, NUMBERS_PER_BLOCK // max(1, contexts.numel()))
        blocks = [
            logsigmoid(self.model.score_parts(contexts, block[:, None])).cpu() for block in sentences.split(rows)
        ]
        scores: np.ndarray = torch.cat([torch.zeros(0, len(contexts)), *blocks]).numpy()
        return scores

    @torch.inference_mode()
    def rank(self, sentences: torch.Tensor, contexts: Contexts) -> np.ndarray:
        parts, found = contexts.stored[PARTS], []
        for start in range(0, len(contexts), RANKED_PER_BLOCK):
            block = torch.from_numpy(parts[start : start + RANKED_PER_BLOCK]).to(sentences.device).float()
            found.append(torch.stack([self.model.score_parts(block, sentence[None]).cpu() for sentence in sentences]))
        scores: np.ndarray = torch.cat([torch.zeros(len(sentences), 0), *found], dim=1).numpy()
        return scores

    def stored(self, contexts: Contexts) -> dict[str, np.ndarray]:
        parts = self.prepare_contexts(contexts).cpu().numpy()
        half = parts.astype(np.float16)
        return {PARTS: half, PARTS_REST: (parts - half).astype(np.float16)}

    def _vectors(self, sentences: TokenizedSentences) -> torch.Tensor:
        return self.model.encode_sentences(*self.tensors(sentences, self.model.device))
