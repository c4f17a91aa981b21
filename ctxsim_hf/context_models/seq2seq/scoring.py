"""The seq2seq generator as a context model: it answers the generative terms of Eq. 3 of its direction.

The source of the direction `sentence` is a context alone, so it is encoded once for all sentences. The other two
directions have a different source for every pair.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
import torch
from transformers import TokenizersBackend
from transformers.modeling_outputs import BaseModelOutput

from ctxsim_hf.context_models.base import ContextModel
from ctxsim_hf.context_models.contexts import Contexts
from ctxsim_hf.context_models.sentence_tensors import SpecialIds
from ctxsim_hf.context_models.seq2seq.modeling import ContextGeneratorModel
from ctxsim_hf.context_models.seq2seq.windows import WindowTokens
from ctxsim_hf.context_models.terms import DIRECTIONS
from ctxsim_hf.context_models.token_budget import padded_batches
from ctxsim_hf.text.fast_tokenizer import open_tokenizer
from ctxsim_hf.text.tokenized import TokenizedSentences, tokenize_sentences


class Seq2SeqContextModel(ContextModel):
    """Answers the terms `sentence`, `left` and `right`, or one of them."""

    def __init__(self, model: ContextGeneratorModel, tokenizer: TokenizersBackend) -> None:
        self.model, self.tokenizer, self.width = model.eval(), tokenizer, model.config.width
        self.special = SpecialIds.of(tokenizer)
        self.for_all = model.config.direction == "all"
        self.terms = DIRECTIONS if self.for_all else (model.config.direction,)

    @classmethod
    def load(cls, folder: Path, device: str) -> Self:
        return cls(ContextGeneratorModel.from_pretrained(folder).to(device), open_tokenizer(folder))

    def prepare_sentences(self, sentences: Sequence[str]) -> TokenizedSentences:
        return tokenize_sentences(self.tokenizer, sentences)

    def prepare_contexts(self, contexts: Contexts) -> "EncodedContexts":
        return EncodedContexts(self, contexts)

    @torch.inference_mode()
    def score(self, term: str, sentences: TokenizedSentences, contexts: "EncodedContexts") -> np.ndarray:
        shape = (len(sentences), len(contexts))
        found = np.zeros(shape, np.float32).reshape(-1)
        if not all(shape):
            return found.reshape(shape)
        windows, tokens = contexts.windows_with(sentences)  # (sentences, contexts, window)
        windows = windows.reshape(-1, windows.shape[-1])
        source_lengths, target_lengths = tokens.lengths(windows, term)
        order = np.lexsort((source_lengths, target_lengths))
        for rows in padded_batches(order, source_lengths + target_lengths):
            labels = tokens.target(windows[rows], term).to(self.model.device)
            if term == "sentence":
                states, mask = contexts.encoded(rows % shape[1])
                scores = self.model.log_prob(None, mask, None, labels, encoder_outputs=states)
            else:
                scores = self.model.log_prob(labels=labels, **self._source(tokens, windows[rows], term))
            found[rows] = (scores / self.model.target_lengths(labels)).cpu().numpy()
        return found.reshape(shape)

    @torch.inference_mode()
    def encode_sources(self, tokens: WindowTokens, windows: np.ndarray) -> list[torch.Tensor]:
        """Return the encoder states of the direction `sentence`, a tensor (tokens, d_model) for each window."""
        lengths, _ = tokens.lengths(windows, "sentence")
        states: list[torch.Tensor] = [torch.empty(0)] * len(windows)
        for rows in padded_batches(np.argsort(lengths, kind="stable"), lengths):
            encoded = self.model.encode(**self._source(tokens, windows[rows], "sentence"))
            for row, state in zip(rows, encoded.last_hidden_state, strict=True):
                states[row] = state[: lengths[row]].clone()
        return states

    def _source(self, tokens: WindowTokens, windows: np.ndarray, term: str) -> dict[str, torch.Tensor]:
        source = tokens.source(windows, term)
        if self.for_all:
            source["direction_ids"] = torch.full((len(windows),), DIRECTIONS.index(term))
        return {name: tensor.to(self.model.device) for name, tensor in source.items()}


class EncodedContexts:
    """Contexts, and their encoder states, which are computed on first use."""

    def __init__(self, scorer: Seq2SeqContextModel, contexts: Contexts) -> None:
        self.scorer = scorer
        self.tokens = contexts.tokens(scorer.tokenizer, scorer.width)

    def __len__(self) -> int:
        return len(self.tokens.left)

    def windows_with(self, sentences: TokenizedSentences) -> tuple[np.ndarray, WindowTokens]:
        """Return the windows of every sentence in every context, (sentences, contexts, window), and their tokens."""
        left, right = self.tokens.left, self.tokens.right
        middle = len(self.tokens.sentences) + np.arange(len(sentences))
        shape = (len(sentences), len(left))
        windows = np.concatenate(
            [
                np.broadcast_to(left[:, ::-1], (*shape, left.shape[1])),
                np.broadcast_to(middle[:, None, None], (*shape, 1)),
                np.broadcast_to(right, (*shape, right.shape[1])),
            ],
            axis=-1,
        )
        longest = self.scorer.model.config.max_sentence_tokens
        store = self.tokens.sentences.followed_by(sentences)
        return windows, WindowTokens(store, left.shape[1], longest, self.scorer.special)

    @cached_property
    def _states(self) -> list[torch.Tensor]:
        no_sentence = TokenizedSentences(self.tokens.sentences.tokens[:0], np.zeros(2, dtype=np.int64))
        windows, tokens = self.windows_with(no_sentence)
        return self.scorer.encode_sources(tokens, windows[0])

    def encoded(self, contexts: np.ndarray) -> tuple[BaseModelOutput, torch.Tensor]:
        """Return the padded encoder states of some contexts, and their mask."""
        states = [self._states[context] for context in contexts]
        mask = torch.nn.utils.rnn.pad_sequence([state.new_ones(len(state)).long() for state in states], True)
        padded = torch.nn.utils.rnn.pad_sequence(states, True)
        return BaseModelOutput(last_hidden_state=padded), mask
