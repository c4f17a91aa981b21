"""Turn public datasets with human labels into the rows that a surrogate is fine-tuned on (paper, section 5).

Scores from 0 to 5 become cosines from 0 to 1. AFS has no splits: the model is evaluated on `--fold` K of `--folds` and
trained on the rest.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash
from transformers import TokenizersBackend

from ctxsim_hf.surrogate.labelled_rows import tokenize_rows
from ctxsim_hf.surrogate.pair_data import SurrogateData, lexical_cosines
from ctxsim_hf.text.lexical import TfidfCosine
from ctxsim_hf.text.public_datasets import PUBLIC_DATASETS, PublicDataset, labels_of, read_public_dataset

# Objective -> the dataset, and the splits for training and for validation; or one split, to be cut in folds.
PUBLIC_OBJECTIVES = {
    "sts": ("stsb", ("train", "validation")),
    "nli": ("nli", ("train", "dev")),
    "triplet": ("wikipedia-sections", ("train", "validation")),
    "afs": ("afs", ("test",)),
}


@dataclass(frozen=True)
class PublicRows:
    """The train and validation rows of a public dataset."""

    data: PublicDataset
    train: pa.Table
    validation: pa.Table

    @classmethod
    def read(cls, objective: str, data_root: str | None, fold: int, folds: int) -> "PublicRows":
        """Read the dataset of an objective; None as `data_root` reads it from the Hub."""
        name, splits = PUBLIC_OBJECTIVES[objective]
        data = PUBLIC_DATASETS[name]
        tables = [read_public_dataset(name, split, data_root) for split in splits]
        if len(tables) == 1:
            held_out = folds_of(tables[0], data.sentences, folds) == fold
            tables = [tables[0].filter(pa.array(~held_out)), tables[0].filter(pa.array(held_out))]
        return cls(data, *tables)

    def describe(self) -> dict[str, Any]:
        """Describe the dataset for stage.json."""
        digest = xxhash.xxh3_128()
        for table in (self.train, self.validation):
            for name in table.column_names:
                digest.update(repr(table[name].to_pylist()).encode("utf-8", "surrogatepass"))
        return {"name": self.data.hub_id, "xxh3_128": digest.hexdigest()}

    def open(self, tokenizer: TokenizersBackend, tokenizer_digest: str) -> SurrogateData:
        """Tokenise the rows."""
        parts, sentences = [], []
        for table in (self.train, self.validation):
            columns = [table[name] for name in self.data.sentences]
            rows, found = tokenize_rows(tokenizer, columns, self._labels(table))
            parts.append(rows)
            sentences.append(found)
        train, validation = parts
        if self.data.label is None:
            return SurrogateData(train, validation)
        lexical = TfidfCosine.from_sentences(sentences[0])
        return SurrogateData(train, validation, lexical_cosines(lexical, validation, sentences[1]))

    def _labels(self, table: pa.Table) -> np.ndarray:
        if self.data.label is None:
            return np.zeros(table.num_rows)
        low, high = self.data.label_range
        return (labels_of(table, self.data.label) - low) / (high - low)


def folds_of(table: pa.Table, columns: tuple[str, ...], folds: int) -> np.ndarray:
    """Return the fold of each row, always the same.

    A pair that occurs twice, in either order, is in one fold. A sentence may be in several, since there are far fewer
    sentences than pairs.
    """
    texts = zip(*(table[name].to_pylist() for name in columns), strict=True)
    _, numbers = np.unique(["\0".join(sorted(row)) for row in texts], return_inverse=True)
    dealt = np.random.default_rng(0).permutation(numbers.max() + 1) % folds
    return np.asarray(dealt[numbers])
