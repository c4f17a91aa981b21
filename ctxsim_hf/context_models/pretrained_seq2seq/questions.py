"""Sentences and contexts in token ids -> the questions of a term, one for each pair, grouped by what they share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ctxsim_hf.context_models.pretrained_seq2seq.templates import READING_ORDER, Parts, TemplateIds
from ctxsim_hf.context_models.token_budget import padded_batches


@dataclass(frozen=True)
class Sides:
    """Token ids of a context."""

    left: np.ndarray
    right: np.ndarray


@dataclass(frozen=True)
class Questions:
    """A term asked of every sentence in every context. Pairs are numbered: all contexts of the first sentence, all of
    the second, and so on."""

    template: TemplateIds
    term: str
    sentences: Sequence[np.ndarray]
    contexts: Sequence[Sides]

    def source(self, pair: int) -> np.ndarray:
        return self.template.source(self.term, self._parts(pair))

    def decoder(self, pair: int) -> np.ndarray:
        return self.template.decoder(self.term, self._parts(pair))

    @cached_property
    def target_lengths(self) -> np.ndarray:
        return self._part_lengths[READING_ORDER.index(self.term)]

    @cached_property
    def source_lengths(self) -> np.ndarray:
        return self.template.source_lengths(self.term, self._part_lengths)

    @cached_property
    def decoder_lengths(self) -> np.ndarray:
        return self.template.decoder_lengths(self.term, self._part_lengths)

    def by_source(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield a batch of pairs with different sources, and all pairs that have these sources, the first of each
        again the first: the batch, then pairs with the same sources in the same order, and so on."""
        pairs = len(self.sentences) * len(self.contexts)
        # The source of the term `sentence` is the context alone.
        sharing = len(self.sentences) if self.term == "sentence" else 1
        different = np.arange(pairs // sharing if sharing else 0)
        order = np.lexsort((self.decoder_lengths[different], self.source_lengths[different]))
        for batch in padded_batches(order, self.source_lengths):
            yield batch, (batch + len(self.contexts) * np.arange(sharing)[:, None]).ravel()

    def _parts(self, pair: int) -> Parts:
        sentence, context = divmod(pair, len(self.contexts))
        return self.contexts[context].left, self.sentences[sentence], self.contexts[context].right

    @cached_property
    def _part_lengths(self) -> Parts:
        left, right = (
            np.tile([len(getattr(context, side)) for context in self.contexts], len(self.sentences)).astype(np.int64)
            for side in ("left", "right")
        )
        sentence = np.repeat([len(ids) for ids in self.sentences], len(self.contexts)).astype(np.int64)
        return left, sentence, right
