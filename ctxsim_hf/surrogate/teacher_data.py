"""Turn the vectors of a teacher into the rows that a surrogate is measured on and the batches that it is trained on.

A batch holds seeds with some of their nearest neighbours, and every two of its sentences are a pair, so that most
pairs are unrelated and some are hard to tell apart. The rows are pairs of neighbours and pairs at random, as many
of each.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import TokenizersBackend

from ctxsim_hf.context_models.collators import Tensors
from ctxsim_hf.harvest.teacher_vectors import VECTOR_SPLITS, TeacherVectors
from ctxsim_hf.harvest.vectors_command import COMMAND
from ctxsim_hf.runtime.fetch import fetch_folder
from ctxsim_hf.runtime.record import describe_stage
from ctxsim_hf.surrogate.labelled_rows import LabelledRows
from ctxsim_hf.surrogate.pair_data import SurrogateData, lexical_cosines
from ctxsim_hf.surrogate.row_batches import RowCollator
from ctxsim_hf.text.lexical import TfidfCosine
from ctxsim_hf.text.tokenized import tokenize_sentences
from ctxsim_hf.train.batches import budget_runs

DRAWN = 5  # neighbours of a seed in a batch, another choice in each epoch
ROWS_PER_SENTENCE = 4  # pairs with neighbours, and as many at random


@dataclass(frozen=True, kw_only=True)
class TeacherData(SurrogateData):
    """Rows, and the vectors that batches are made from."""

    vectors: TeacherVectors


@dataclass(frozen=True)
class VectorFolder:
    """A folder made by `ctxsim harvest-vectors`."""

    path: Path

    @classmethod
    def find(cls, vectors: str) -> "VectorFolder":
        """Open a local folder or a dataset on the Hub."""
        return cls(fetch_folder(vectors, f"a folder made by `ctxsim {COMMAND}`", repo_type="dataset"))

    def describe(self) -> dict[str, Any]:
        """Describe the vectors for stage.json."""
        return describe_stage(self.path, COMMAND)

    def open(self, tokenizer: TokenizersBackend, tokenizer_digest: str) -> TeacherData:
        """Tokenise the sentences."""
        train, validation = (TeacherVectors.load(self.path, split) for split in VECTOR_SPLITS)
        rows = teacher_rows(tokenizer, validation)
        lexical = TfidfCosine.from_sentences(train.sentences)
        tfidf = lexical_cosines(lexical, rows, validation.sentences)
        return TeacherData(teacher_rows(tokenizer, train), rows, tfidf, vectors=train)


def teacher_rows(tokenizer: TokenizersBackend, vectors: TeacherVectors) -> LabelledRows:
    """Return pairs of neighbours and pairs at random with their similarities, the same on every call."""
    number, rng = len(vectors.sentences), np.random.default_rng(0)
    near = vectors.neighbours[:, :ROWS_PER_SENTENCE]
    others = (np.arange(number)[:, None] + rng.integers(1, number, near.shape)) % number
    seconds = np.hstack([near, others])
    members = np.stack([np.repeat(np.arange(number), seconds.shape[1]), seconds.ravel()], axis=1).astype(np.int32)
    labels = vectors.pair_similarity(members).astype(np.float32)
    unknown = np.full(len(labels), np.nan, np.float32)
    return LabelledRows(
        tokenize_sentences(tokenizer, vectors.sentences), members, labels, unknown, np.array([0, len(labels)])
    )


@dataclass(frozen=True)
class TeacherCollator(RowCollator):
    """Make batches of seeds and their neighbours, and turn batches into tensors."""

    vectors: TeacherVectors

    def __call__(self, batch: np.ndarray) -> Tensors:
        """Return these sentences, the longest first, and every two of them as a pair with its similarity."""
        ordered = batch[np.argsort(-self.lengths(batch), kind="stable")]
        first, second = np.triu_indices(len(ordered), 1)
        labels = self.vectors.similarity(ordered)[first, second].astype(np.float32)
        members = torch.from_numpy(np.stack([first, second], axis=1))
        return self.encode(ordered) | {"members": members, "labels": torch.from_numpy(labels)}

    def batches(self, tokens_per_batch: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Return the sentences of each batch. Every sentence is a seed once."""
        seeds, neighbours = rng.permutation(len(self.vectors.sentences)), self.vectors.neighbours
        drawn = rng.permuted(np.broadcast_to(np.arange(neighbours.shape[1]), neighbours.shape), axis=1)[:, :DRAWN]
        families = np.hstack([seeds[:, None], np.take_along_axis(neighbours, drawn, axis=1)[seeds]])
        sizes = self.lengths(families.ravel()).reshape(families.shape).sum(1)
        runs = budget_runs(sizes, tokens_per_batch, "sentence with its neighbours")
        return [np.unique(families[start:end]) for start, end in runs]
