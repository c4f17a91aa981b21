"""A part of the sentences -> their vectors. Duplicates are encoded once, and sentences of similar length share a
batch, so that little of it is padding."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from ctxsim_hf.encoder.vector_checks import check_vectors
from ctxsim_hf.runtime.threads import no_spinning
from ctxsim_hf.text.marks import Marks
from ctxsim_hf.text.tokenized import TokenizedSentences, tokenize_sentences

NO_LIMIT = 2**31 - 1  # tokens of a sentence, where nothing sets a limit


class VectorModel(Protocol):
    """A model as an encoder needs it, with torch, ONNX or anything else behind it."""

    vector_size: int
    tokens_per_batch: int  # the default, padding included

    def __call__(self, input_ids: np.ndarray, attention_mask: np.ndarray) -> np.ndarray:
        """Return vectors: two int64 arrays (sentences, tokens) -> float32 (sentences, vector_size)."""
        ...


@runtime_checkable
class FlatModel(Protocol):
    """A model that needs no batches: it takes tokens without special tokens, one sentence after another."""

    def mean(self, tokens: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Return vectors: (tokens,) ids and (sentences + 1,) starts -> float32 (sentences, vector_size)."""
        ...


class SentenceTokenizer(Protocol):
    """A tokenizer as an encoder needs it: a fast one of transformers, or a [`PlainTokenizer`]."""

    pad_token_id: int

    def __call__(self, sentences: list[str], **options: Any) -> Any:
        """Return the ids of each sentence as `input_ids`, with special tokens if `add_special_tokens`."""
        ...


class EncodeSettings(NamedTuple):
    """The settings of one call of `encode`."""

    tokens_per_batch: int  # padding included
    normalize: bool


class EncodedPart(NamedTuple):
    """The vectors of a part of the sentences."""

    vectors: np.ndarray  # (sentences, vector size)
    too_long: np.ndarray  # positions of sentences that were truncated


@dataclass(frozen=True)
class PartEncoder:
    """Tokenises and encodes a part of the sentences."""

    model: VectorModel
    tokenizer: SentenceTokenizer
    max_tokens: int  # of a sentence, special tokens included
    prompt: str = ""  # before every sentence

    @cached_property
    def marks(self) -> Marks:
        """Return the special tokens around a sentence."""
        return Marks.of(self.tokenizer)

    @no_spinning()
    def __call__(
        self, sentences: Sequence[str], settings: EncodeSettings, progress: Callable[[int], object]
    ) -> EncodedPart:
        """Encode sentences. `progress` is called with the number of sentences of each batch."""
        numbers = {sentence: number for number, sentence in enumerate(dict.fromkeys(sentences))}
        tokens = tokenize_sentences(self.tokenizer, [self.prompt + sentence for sentence in numbers])
        if isinstance(self.model, FlatModel):
            vectors = self.model.mean(tokens.tokens, tokens.sentence_starts)
            progress(len(sentences))
            return self._part(vectors, [numbers[sentence] for sentence in sentences], tokens, settings)
        longest = self.max_tokens - self.marks.size
        lengths = np.minimum(tokens.lengths, longest) + self.marks.size
        vectors = np.zeros((len(tokens), self.model.vector_size), np.float32)  # sentences without tokens stay zero
        for rows in _batches(lengths, settings.tokens_per_batch):
            vectors[rows] = self.model(*self.marks.frame(tokens, rows, longest))
            progress(len(rows))
        progress(len(sentences) - int((lengths > 0).sum()))
        return self._part(vectors, [numbers[sentence] for sentence in sentences], tokens, settings)

    def _part(
        self, vectors: np.ndarray, places: list[int], tokens: TokenizedSentences, settings: EncodeSettings
    ) -> EncodedPart:
        check_vectors(vectors)
        if settings.normalize:
            vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        longest = self.max_tokens - (0 if isinstance(self.model, FlatModel) else self.marks.size)
        return EncodedPart(vectors[places], np.flatnonzero(tokens.lengths[places] > longest))


def _batches(lengths: np.ndarray, tokens_per_batch: int) -> Iterator[np.ndarray]:
    """Yield non-empty rows of similar lengths, the longest first, so that a lack of memory shows at once."""
    order = np.argsort(-lengths, kind="stable")[: int((lengths > 0).sum())]
    start = 0
    while start < len(order):
        number = max(1, tokens_per_batch // int(lengths[order[start]]))
        yield order[start : start + number]
        start += number
