"""Tokenised chunks -> batches of a token budget, the same for the same seed and epoch.

Batches are formed in one of two ways. By chunk: all contexts of some random chunks, so that a sentence that occurs in
three contexts is read once (discriminator, light generator). By length: contexts whose sources and targets have
similar lengths, so that little is padding (seq2seq generator).
"""

import numpy as np

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.tokenized import TokenizedChunks

CONTEXTS_PER_WINDOW = 50_000  # sorted by length together: enough to find similar ones, few enough to stay random


def chunk_batches(
    chunks: TokenizedChunks, tokens_per_batch: int, max_sentence_tokens: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Return the chunk numbers of each batch, every chunk once."""
    order = rng.permutation(chunks.num_chunks)
    lengths = np.minimum(chunks.lengths, max_sentence_tokens) + 1  # the end token
    sizes = np.add.reduceat(lengths, chunks.chunk_starts[:-1])[order]
    return [order[start:end] for start, end in budget_runs(sizes, tokens_per_batch, "chunk")]


def length_batches(
    sources: np.ndarray, targets: np.ndarray, tokens_per_batch: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Return the rows of each batch, every row once, given the numbers of source and target tokens of each row."""
    order = rng.permutation(len(sources))
    batches = []
    for start in range(0, len(order), CONTEXTS_PER_WINDOW):
        window = order[start : start + CONTEXTS_PER_WINDOW]
        # Sort by buckets of source length, and within them by target length, ascending and descending in turn, so that
        # neighbours are similar in both.
        step = max(4, int(sources[window].mean() / 8))
        bucket = sources[window] // step
        signed = np.where(bucket % 2 == 0, targets[window], -targets[window])
        window = window[np.lexsort((signed, bucket))]
        batches += _padded_runs(window, sources[window], targets[window], tokens_per_batch)
    return [batches[i] for i in rng.permutation(len(batches))]


def budget_runs(sizes: np.ndarray, budget: int, unit: str) -> list[tuple[int, int]]:
    """Cut consecutive sizes into runs whose sum is at most the budget; return the start and end of each."""
    _refuse_small_budget(int(sizes.max()), budget, unit)
    ends = np.cumsum(sizes)
    runs, start = [], 0
    while start < len(sizes):
        before = ends[start - 1] if start else 0
        end = int(np.searchsorted(ends, before + budget, side="right"))
        runs.append((start, end))
        start = end
    return runs


def _padded_runs(rows: np.ndarray, sources: np.ndarray, targets: np.ndarray, budget: int) -> list[np.ndarray]:
    """Cut sorted rows into runs whose size with padding is at most the budget."""
    _refuse_small_budget(int((sources + targets).max()), budget, "context")
    runs, start, longest_source, longest_target = [], 0, 0, 0
    for end in range(len(rows)):
        longest_source = max(longest_source, int(sources[end]))
        longest_target = max(longest_target, int(targets[end]))
        if (longest_source + longest_target) * (end + 1 - start) > budget:
            runs.append(rows[start:end])
            start, longest_source, longest_target = end, int(sources[end]), int(targets[end])
    return [*runs, rows[start:]]


def _refuse_small_budget(longest: int, budget: int, unit: str) -> None:
    if longest > budget:
        raise UserError(
            f"--tokens-per-batch {budget} is less than the {longest} tokens of the longest {unit}; "
            "raise it, or lower --max-sentence-tokens"
        )
