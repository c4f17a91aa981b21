"""Chunks -> rows of token ids to train a causal language model on.

A row is a stretch of consecutive sentences of one chunk, as text with a space before each sentence: just what
`CausalContextModel` scores.
"""

from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, normalizers
from transformers import TokenizersBackend

from ctxsim_hf.context_models.collators import Tensors
from ctxsim_hf.runtime.cache import cached_folder
from ctxsim_hf.text.tokenized import TokenizedChunks
from ctxsim_hf.train.batches import budget_runs

IGNORED = -100  # a label that the loss leaves out


def save_tokenizer_after_space(tokenizer: TokenizersBackend) -> Path:
    """Keep a copy of a tokenizer in the cache that reads each sentence as if a space stood before it, and return its
    folder: many vocabularies tell the word that begins a text from the same word within it."""
    backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    backend.no_padding()
    backend.no_truncation()
    own = [] if backend.normalizer is None else [backend.normalizer]
    backend.normalizer = normalizers.Sequence([normalizers.Prepend(" "), *own])

    def build(folder: Path) -> None:
        TokenizersBackend(tokenizer_object=backend).save_pretrained(folder)

    return cached_folder("tokenizers", backend.to_str(), build)


def token_ranges(chunks: TokenizedChunks, max_tokens: int) -> np.ndarray:
    """Cut chunks into stretches of whole sentences with at most `max_tokens` tokens; a longer sentence is cut.

    Returns:
        Where each stretch starts and ends in `chunks.tokens`, (stretches, 2).
    """
    sizes = np.minimum(chunks.lengths, max_tokens)
    ranges = []
    for first, end in zip(chunks.chunk_starts[:-1].tolist(), chunks.chunk_starts[1:].tolist(), strict=True):
        for start, stop in budget_runs(sizes[first:end], max_tokens, "sentence"):
            ranges.append((first + start, first + stop))
    tokens = chunks.sentence_starts[np.array(ranges)]
    tokens[:, 1] = np.minimum(tokens[:, 1], tokens[:, 0] + max_tokens)
    return tokens


def stack_rows(rows: list[np.ndarray], start: list[int]) -> Tensors:
    """Put the start mark before rows of token ids and pad them on the right, with labels for a causal loss."""
    lengths = torch.tensor([len(start) + len(row) for row in rows])
    ids = torch.zeros(len(rows), int(lengths.max()), dtype=torch.long)
    for number, row in enumerate(rows):
        ids[number, : lengths[number]] = torch.tensor([*start, *row.tolist()])
    mask = torch.arange(ids.shape[1]) < lengths[:, None]
    return {"input_ids": ids, "attention_mask": mask.long(), "labels": ids.masked_fill(~mask, IGNORED)}
