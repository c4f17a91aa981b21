"""Tokenised sentences -> the tensors our own models read, cut and closed as in training."""

from dataclasses import dataclass

import numpy as np
import torch
from transformers import TokenizersBackend

from ctxsim_hf.text.tokenized import TokenizedSentences


@dataclass(frozen=True)
class SpecialIds:
    bos: int
    pad: int
    eos: int

    @classmethod
    def of(cls, tokenizer: TokenizersBackend) -> "SpecialIds":
        return cls(tokenizer.bos_token_id, tokenizer.pad_token_id, tokenizer.eos_token_id)


@dataclass(frozen=True)
class SentenceTensors:
    special: SpecialIds
    max_sentence_tokens: int

    def __call__(self, sentences: TokenizedSentences, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        """Return ids and mask of all sentences, end marks included, padded on the right."""
        rows, special = np.arange(len(sentences)), self.special
        ids = torch.from_numpy(sentences.padded(rows, special.pad, self.max_sentence_tokens, special.eos))
        return ids.to(device), (ids != special.pad).long().to(device)
