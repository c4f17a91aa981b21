"""Some sentences -> their vectors, with little work: they are tokenised once, duplicates are encoded once, and
those of like length share a batch, so that little of it is padding."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from ctxsim_hf.text.tokenized import TokenizedSentences, tokenize_sentences

MARKS = 2  # `<s>` and `</s>`


class VectorModel(Protocol):
    """What an encoder asks of a model, whatever runs it."""

    vector_size: int
    tokens_per_batch: int  # that suit it, padding included

    def __call__(self, input_ids: np.ndarray, attention_mask: np.ndarray) -> np.ndarray:
        """Twice (sentences, tokens) int64 -> (sentences, vector_size) float32."""
        ...


class SentenceTokenizer(Protocol):
    """What an encoder asks of a tokenizer: transformers' fast ones, or [`PlainTokenizer`]."""

    bos_token_id: int
    eos_token_id: int
    pad_token_id: int

    def __call__(self, sentences: list[str], **options: Any) -> Any:
        """With `add_special_tokens=False`, the ids of each sentence under `input_ids`."""
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

    def __call__(
        self, sentences: Sequence[str], settings: EncodeSettings, progress: Callable[[int], object]
    ) -> EncodedPart:
        """Encode sentences; `progress` is told how many more are done."""
        numbers = {sentence: number for number, sentence in enumerate(dict.fromkeys(sentences))}
        tokens = tokenize_sentences(self.tokenizer, list(numbers))
        lengths = np.minimum(tokens.lengths + MARKS, self.max_tokens)
        vectors = np.empty((len(tokens), self.model.vector_size), np.float32)
        for rows in _batches(lengths, settings.tokens_per_batch):
            vectors[rows] = self.model(*self._padded(tokens, rows, lengths[rows]))
            progress(len(rows))
        if settings.normalize:
            vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        progress(len(sentences) - len(tokens))
        places = np.array([numbers[sentence] for sentence in sentences])
        return EncodedPart(vectors[places], np.flatnonzero(tokens.lengths[places] + MARKS > self.max_tokens))

    def _padded(
        self, tokens: TokenizedSentences, rows: np.ndarray, lengths: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """`<s> ... </s>` of some sentences, and 1 where that is no padding."""
        start, end, pad = self.tokenizer.bos_token_id, self.tokenizer.eos_token_id, self.tokenizer.pad_token_id
        ids = np.insert(tokens.padded(rows, pad, self.max_tokens - MARKS, end), 0, start, axis=1)
        return ids, (np.arange(ids.shape[1]) < lengths[:, None]).astype(np.int64)


def _batches(lengths: np.ndarray, tokens_per_batch: int) -> Iterator[np.ndarray]:
    """Rows of like lengths, the longest first: what is too much for the memory fails at once."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        number = max(1, tokens_per_batch // int(lengths[order[start]]))
        yield order[start : start + number]
        start += number
