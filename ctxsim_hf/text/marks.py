"""A tokenizer -> its marks: the special tokens it puts around sentences, such as `[CLS] ... [SEP]` or `<s> ... </s>`.

They are found by tokenising a short text with and without special tokens: the marks are what was added before and
after it. A tokenizer that adds nothing has marks of length zero.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.tokenized import TokenizedSentences

PROBES = ("a", "1", ".", "the", "人")  # the first that gives any token is used


@dataclass(frozen=True)
class Marks:
    """The ids around a single sentence."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    pad: int

    @classmethod
    def of(cls, tokenizer: Any) -> "Marks":
        """Return the marks of a fast tokenizer of transformers, or of a `PlainTokenizer`."""
        probe, bare = _probe(tokenizer)
        before, after = _around(bare, tokenizer([probe], add_special_tokens=True)["input_ids"][0])
        if tokenizer.pad_token_id is None:
            raise UserError("expected a tokenizer with a pad token, got one without; set its pad_token and save it")
        return cls(before, after, tokenizer.pad_token_id)

    @property
    def size(self) -> int:
        return len(self.before) + len(self.after)

    def frame(self, sentences: TokenizedSentences, rows: np.ndarray, max_tokens: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the ids of some sentences with their marks, padded on the right, and the attention mask: both (rows,
        tokens), int64. A sentence is truncated to `max_tokens` tokens, marks not counted."""
        bare = sentences.padded(rows, self.pad, max_tokens)
        lengths = np.minimum(sentences.lengths[rows], max_tokens)[:, None]
        start = len(self.before)
        ids = np.full((len(rows), bare.shape[1] + self.size), self.pad, np.int64)
        ids[:, :start] = self.before
        ids[:, start : start + bare.shape[1]] = bare
        ids[np.arange(len(rows))[:, None], start + lengths + np.arange(len(self.after))] = self.after
        width = max(1, int(lengths.max(initial=0)) + self.size)  # a model needs an input even for an empty sentence
        mask = np.arange(width) < lengths + self.size
        return ids[:, :width], mask.astype(np.int64)


@dataclass(frozen=True)
class PairMarks:
    """The ids around and between two sentences that a model reads together."""

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    pad: int
    second_type: int  # token type of the second sentence and what follows it; the rest has type 0

    @classmethod
    def of(cls, tokenizer: Any) -> "PairMarks":
        """Return the marks of a fast tokenizer for a pair of sentences."""
        probe, bare = _probe(tokenizer)
        framed = tokenizer([probe], [probe], add_special_tokens=True, return_token_type_ids=True)
        before, rest = _around(bare, framed["input_ids"][0])
        between, after = _around(bare, rest)
        reads_types = "token_type_ids" in tokenizer.model_input_names
        second_type = framed["token_type_ids"][0][-1] if reads_types else 0
        return cls(before, between, after, tokenizer.pad_token_id, second_type)

    @property
    def size(self) -> int:
        return len(self.before) + len(self.between) + len(self.after)

    def frame(self, first: Iterable[int], second: Iterable[int]) -> tuple[list[int], list[int]]:
        """Return the ids and token types of two sentences with their marks."""
        start, end = [*self.before, *first, *self.between], [*second, *self.after]
        return start + end, [0] * len(start) + [self.second_type] * len(end)


def _probe(tokenizer: Any) -> tuple[str, list[int]]:
    """Return a short text and its tokens, without marks."""
    for text in PROBES:
        if ids := list(tokenizer([text], add_special_tokens=False)["input_ids"][0]):
            return text, ids
    raise UserError(f"expected a tokenizer of text, got one that gives no tokens for any of {', '.join(PROBES)}")


def _around(bare: list[int], framed: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the ids before and after the first occurrence of `bare`."""
    for start in range(len(framed) - len(bare) + 1):
        if list(framed[start : start + len(bare)]) == bare:
            return tuple(framed[:start]), tuple(framed[start + len(bare) :])
    raise UserError(
        f"expected a tokenizer that puts special tokens around those of a sentence, {bare}, got {list(framed)}"
    )
