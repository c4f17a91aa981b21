"""Some sentences -> their vectors, with little work: they are tokenised once, duplicates are encoded once, and
those of like length share a batch, so that little of it is padding."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from ctxsim_hf.text.marks import Marks
from ctxsim_hf.text.tokenized import tokenize_sentences


class VectorModel(Protocol):
    """What an encoder asks of a model, whatever runs it."""

    vector_size: int
    tokens_per_batch: int  # that suit it, padding included

    def __call__(self, input_ids: np.ndarray, attention_mask: np.ndarray) -> np.ndarray:
        """Twice (sentences, tokens) int64 -> (sentences, vector_size) float32."""
        ...


class SentenceTokenizer(Protocol):
    """What an encoder asks of a tokenizer: transformers' fast ones, or [`PlainTokenizer`]."""

    pad_token_id: int

    def __call__(self, sentences: list[str], **options: Any) -> Any:
        """The ids of each sentence under `input_ids`; `add_special_tokens` says whether with the marks."""
        ...


class EncodeSettings(NamedTuple):
    tokens_per_batch: int  # padding included
    normalize: bool


class EncodedPart(NamedTuple):
    vectors: np.ndarray  # (sentences, vector size)
    too_long: np.ndarray  # places of sentences that were cut


@dataclass(frozen=True)
class PartEncoder:
    model: VectorModel
    tokenizer: SentenceTokenizer
    max_tokens: int  # of a sentence, marks included

    @cached_property
    def marks(self) -> Marks:
        return Marks.of(self.tokenizer)

    def __call__(
        self, sentences: Sequence[str], settings: EncodeSettings, progress: Callable[[int], object]
    ) -> EncodedPart:
        """Encode sentences; `progress` is told how many more are done."""
        numbers = {sentence: number for number, sentence in enumerate(dict.fromkeys(sentences))}
        tokens = tokenize_sentences(self.tokenizer, list(numbers))
        longest = self.max_tokens - self.marks.size
        lengths = np.minimum(tokens.lengths, longest) + self.marks.size
        vectors = np.zeros((len(tokens), self.model.vector_size), np.float32)  # which is that of no token at all
        for rows in _batches(lengths, settings.tokens_per_batch):
            vectors[rows] = self.model(*self.marks.frame(tokens, rows, longest))
            progress(len(rows))
        if settings.normalize:
            vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        progress(len(sentences) - int((lengths > 0).sum()))
        places = np.array([numbers[sentence] for sentence in sentences])
        return EncodedPart(vectors[places], np.flatnonzero(tokens.lengths[places] > longest))


def _batches(lengths: np.ndarray, tokens_per_batch: int) -> Iterator[np.ndarray]:
    """Rows of like lengths, the longest first: what is too much for the memory fails at once. Empty rows are left
    out."""
    order = np.argsort(-lengths, kind="stable")[: int((lengths > 0).sum())]
    start = 0
    while start < len(order):
        number = max(1, tokens_per_batch // int(lengths[order[start]]))
        yield order[start : start + number]
        start += number
