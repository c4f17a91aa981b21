"""Turn labelled rows into batches of a token budget in which every sentence occurs once.

A batch holds whole groups, so a sentence that occurs in 63 pairs of its group is encoded once for all of them. A group
of more tokens than the budget is cut, differently in each epoch: its sentences are dealt into blocks, and the rows
within and between two blocks stay together, which keeps most of the sharing.
"""

from dataclasses import dataclass

import numpy as np
import torch

from ctxsim_hf.context_models.collators import Tensors
from ctxsim_hf.surrogate.labelled_rows import LabelledRows
from ctxsim_hf.text.marks import Marks
from ctxsim_hf.train.batches import budget_runs

BLOCK_SHARE = 0.4  # tokens of a block relative to a batch: two blocks fill most of it


@dataclass(frozen=True)
class RowCollator:
    """Cut rows into batches and turn batches into tensors."""

    rows: LabelledRows
    max_sentence_tokens: int
    marks: Marks

    def lengths(self, sentences: np.ndarray) -> np.ndarray:
        """Return the number of tokens of sentences as the model reads them."""
        return np.minimum(self.rows.sentences.lengths[sentences], self.max_sentence_tokens) + self.marks.size

    def encode(self, sentences: np.ndarray) -> Tensors:
        """Return these sentences with their marks."""
        ids, mask = self.marks.frame(self.rows.sentences, sentences, self.max_sentence_tokens)
        return {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}

    def __call__(self, batch: np.ndarray) -> Tensors:
        """Return the sentences of these rows once each, the longest first, their places `members`, and the labels."""
        present, places = np.unique(self.rows.members[batch], return_inverse=True)
        order = np.argsort(-self.lengths(present), kind="stable")
        place_of = np.empty_like(order)
        place_of[order] = np.arange(len(order))
        members = place_of[places].reshape(len(batch), -1)
        labels = torch.from_numpy(self.rows.labels[batch])
        return self.encode(present[order]) | {"members": torch.from_numpy(members), "labels": labels}

    def batches(self, tokens_per_batch: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Return the row numbers of each batch: every row once, groups in random order."""
        rows = self.rows
        lengths = self.lengths(np.arange(len(rows.sentences)))
        groups = np.empty(len(rows.sentences), np.int64)
        groups[rows.members] = np.repeat(np.arange(rows.num_groups), np.diff(rows.group_starts))[:, None]
        sizes = np.bincount(groups, lengths, rows.num_groups).astype(np.int64)
        pieces = np.split(np.arange(len(rows)), rows.group_starts[1:-1])
        if (too_large := np.flatnonzero(sizes > tokens_per_batch)).size:
            fitting = np.flatnonzero(sizes <= tokens_per_batch)
            cut = [piece for g in too_large for piece in _cut(pieces[g], rows.members, lengths, tokens_per_batch, rng)]
            pieces = [*(pieces[group] for group in fitting), *(piece for piece, _ in cut)]
            sizes = np.concatenate([sizes[fitting], [size for _, size in cut]]).astype(np.int64)
        order = rng.permutation(len(pieces))
        runs = budget_runs(sizes[order], tokens_per_batch, "row of sentences")
        return [np.concatenate([pieces[i] for i in order[start:end]]) for start, end in runs]


def _cut(
    group: np.ndarray, members: np.ndarray, lengths: np.ndarray, budget: int, rng: np.random.Generator
) -> list[tuple[np.ndarray, int]]:
    """Cut the rows of a group into pieces within the budget; return them with their numbers of tokens."""
    present, places = np.unique(members[group], return_inverse=True)
    num_blocks = int(np.ceil(lengths[present].sum() / (BLOCK_SHARE * budget)))
    blocks = (rng.permutation(len(present)) * num_blocks // len(present))[places].reshape(len(group), -1)
    ordered = group[np.lexsort((blocks.max(1), blocks.min(1)))]
    pieces, start, held, size = [], 0, set[int](), 0
    for end, row in enumerate(members[ordered].tolist()):
        new = set(row) - held
        more = int(lengths[list(new)].sum())
        if size + more > budget and end > start:
            pieces.append((ordered[start:end], size))
            start, held, size = end, set(), 0
            new = set(row)
            more = int(lengths[list(new)].sum())
        held |= new
        size += more
    return [*pieces, (ordered[start:], size)]
