"""Turn labelled rows of sentences into the arrays that the batches of a surrogate are made from.

A row has two sentences, or three for a triplet. Rows that share a sentence, directly or through other rows, form a
group, so the groups of a harvest are found again whatever the order of its pairs. Each sentence is tokenised once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from transformers import TokenizersBackend

from ctxsim_hf.text.tokenized import TokenizedSentences, tokenize_sentences

ARRAYS = ("tokens", "sentence_starts", "members", "labels", "spreads", "group_starts")


@dataclass(frozen=True)
class LabelledRows:
    """Tokenised rows with labels, ordered by group."""

    sentences: TokenizedSentences
    members: np.ndarray  # (rows, 2 or 3): places in `sentences`
    labels: np.ndarray  # (rows,)
    spreads: np.ndarray  # (rows,): of the labels; nan where unknown
    group_starts: np.ndarray  # (groups + 1,): first row of each group

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def num_groups(self) -> int:
        """The number of groups."""
        return len(self.group_starts) - 1

    def save(self, folder: Path) -> None:
        """Write the arrays into a new folder."""
        folder.mkdir()
        arrays = (self.sentences.tokens, self.sentences.sentence_starts, self.members, self.labels, self.spreads)
        for name, array in zip(ARRAYS, (*arrays, self.group_starts), strict=True):
            np.save(folder / f"{name}.npy", array, allow_pickle=False)

    @classmethod
    def load(cls, folder: Path) -> "LabelledRows":
        """Memory-map what `save` wrote."""
        tokens, sentence_starts, *rest = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ARRAYS)
        return cls(TokenizedSentences(tokens, sentence_starts), *rest)


def tokenize_rows(
    tokenizer: TokenizersBackend,
    columns: Sequence[pa.ChunkedArray],
    labels: np.ndarray,
    spreads: np.ndarray | None = None,
) -> tuple[LabelledRows, list[str]]:
    """Tokenise columns of text; return rows in the order of their groups, and the distinct sentences."""
    texts = pa.concat_arrays([chunk for column in columns for chunk in column.chunks]).dictionary_encode()
    members = texts.indices.to_numpy().reshape(len(columns), -1).T
    first, others = members[:, :1], members[:, 1:]
    edges = (np.broadcast_to(first, others.shape).ravel(), others.ravel())
    size = len(texts.dictionary)
    graph = coo_array((np.ones(others.size, np.bool_), edges), shape=(size, size))
    groups = connected_components(graph, directed=False)[1][members[:, 0]]
    order = np.argsort(groups, kind="stable")
    sentences = texts.dictionary.to_pylist()
    tokens = tokenize_sentences(tokenizer, sentences)
    smallest = np.uint16 if len(tokenizer) <= 1 << 16 else np.uint32
    rows = LabelledRows(
        TokenizedSentences(tokens.tokens.astype(smallest), tokens.sentence_starts),
        members[order].astype(np.int32),
        labels[order].astype(np.float32),
        np.full(len(labels), np.nan, np.float32) if spreads is None else spreads[order].astype(np.float32),
        np.append(np.flatnonzero(np.diff(groups[order], prepend=-1)), len(labels)),
    )
    return rows, sentences


def join_rows(parts: Sequence[LabelledRows]) -> LabelledRows:
    """Concatenate rows. A sentence in two parts counts as two, and no group spans parts."""
    before = np.cumsum([[len(part.sentences), len(part.sentences.tokens), len(part)] for part in parts], axis=0)
    num_sentences, num_tokens, num_rows = np.vstack([np.zeros_like(before[:1]), before]).T

    def shifted(starts: list[np.ndarray], by: np.ndarray) -> np.ndarray:
        moved = [part[:-1] + offset for part, offset in zip(starts, by[:-1], strict=True)]
        return np.append(np.concatenate(moved), by[-1])

    tokens = np.concatenate([part.sentences.tokens for part in parts])
    members = [part.members + offset for part, offset in zip(parts, num_sentences[:-1], strict=True)]
    return LabelledRows(
        TokenizedSentences(tokens, shifted([part.sentences.sentence_starts for part in parts], num_tokens)),
        np.concatenate(members).astype(np.int32),
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.spreads for part in parts]),
        shifted([part.group_starts for part in parts], num_rows),
    )
