"""Public data sets with people's labels -> the rows that a surrogate is fine-tuned on (paper, section 5).

Scores go from 0 to 5 and become cosines from 0 to 1. AFS has no splits: `--fold` K of `--folds` is what the model is
judged on, and the rest what it learns from.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash
from transformers import TokenizersBackend

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.surrogate.labelled_rows import tokenize_rows
from ctxsim_hf.surrogate.pair_data import SurrogateData, lexical_cosines
from ctxsim_hf.text.lexical import TfidfCosine

HIGHEST_SCORE = 5.0
NUM_CLASSES = 3


@dataclass(frozen=True)
class PublicData:
    hub_id: str
    splits: tuple[str, ...]  # train and validation; or one, to be cut in folds
    sentences: tuple[str, ...]  # columns
    label: str | None = None
    config: str | None = None


PUBLIC_DATA = {
    "sts": PublicData("mteb/stsbenchmark-sts", ("train", "validation"), ("sentence1", "sentence2"), "score"),
    "nli": PublicData(
        "sentence-transformers/all-nli", ("train", "dev"), ("premise", "hypothesis"), "label", "pair-class"
    ),
    "triplet": PublicData(
        "sentence-transformers/wikipedia-sections",
        ("train", "validation"),
        ("anchor", "positive", "negative"),
        config="triplet",
    ),
    "afs": PublicData("ucsc/argument-facet-similarity", ("test",), ("sentence1", "sentence2"), "score"),
}


@dataclass(frozen=True)
class PublicRows:
    """What was read of a data set."""

    data: PublicData
    train: pa.Table
    validation: pa.Table

    @classmethod
    def read(cls, objective: str, data_root: str | None, fold: int, folds: int) -> "PublicRows":
        data = PUBLIC_DATA[objective]
        tables = [_read(data, split, data_root) for split in data.splits]
        if len(tables) == 1:
            held_out = folds_of(tables[0], data.sentences, folds) == fold
            tables = [tables[0].filter(pa.array(~held_out)), tables[0].filter(pa.array(held_out))]
        return cls(data, *tables)

    def describe(self) -> dict[str, Any]:
        """For stage.json."""
        digest = xxhash.xxh3_128()
        for table in (self.train, self.validation):
            for name in table.column_names:
                digest.update(repr(table[name].to_pylist()).encode("utf-8", "surrogatepass"))
        return {"name": self.data.hub_id, "xxh3_128": digest.hexdigest()}

    def open(self, tokenizer: TokenizersBackend, tokenizer_digest: str) -> SurrogateData:
        parts, sentences = [], []
        for table in (self.train, self.validation):
            columns = [table[name] for name in self.data.sentences]
            rows, found = tokenize_rows(tokenizer, columns, self._labels(table))
            parts.append(rows)
            sentences.append(found)
        train, validation = parts
        if self.data.label != "score":
            return SurrogateData(train, validation)
        lexical = TfidfCosine.from_sentences(sentences[0])
        return SurrogateData(train, validation, lexical_cosines(lexical, validation, sentences[1]))

    def _labels(self, table: pa.Table) -> np.ndarray:
        if self.data.label is None:
            return np.zeros(table.num_rows)
        labels = table[self.data.label].to_numpy().astype(np.float64)
        highest = HIGHEST_SCORE if self.data.label == "score" else NUM_CLASSES - 1
        if (bad := np.flatnonzero(~((labels >= 0) & (labels <= highest)))).size:
            raise UserError(
                f"expected a {self.data.label} from 0 to {highest:g} in {self.data.hub_id!r}, but {bad.size} of "
                f"{len(labels)} are not, the first is {labels[bad[0]]:g}"
            )
        return labels / HIGHEST_SCORE if self.data.label == "score" else labels


def folds_of(table: pa.Table, columns: tuple[str, ...], folds: int) -> np.ndarray:
    """The fold of each row, always the same. A pair that stands twice, in either order, is in one fold; its sentences
    are in several, as there are far fewer of them than pairs."""
    texts = zip(*(table[name].to_pylist() for name in columns), strict=True)
    _, numbers = np.unique(["\0".join(sorted(row)) for row in texts], return_inverse=True)
    dealt = np.random.default_rng(0).permutation(numbers.max() + 1) % folds
    return np.asarray(dealt[numbers])


def _read(data: PublicData, split: str, data_root: str | None) -> pa.Table:
    import datasets  # a second to import

    location = data.hub_id if data_root is None else str(Path(data_root) / data.hub_id)
    if data_root is not None and not Path(location).is_dir():
        raise UserError(f"expected the data set {data.hub_id!r} in a folder {location!r}, which does not exist")
    try:
        rows = datasets.load_dataset(location, data.config, split=split)
    except Exception as error:  # the library raises many kinds, all with a readable message
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        hint = "" if data_root else "; without a network, name a folder that has it with --data-root"
        raise UserError(f"expected a data set with the split {split!r} in {location!r}: {reason}{hint}") from error
    wanted = [*data.sentences, *([data.label] if data.label else [])]
    if missing := [name for name in wanted if name not in rows.column_names]:
        found = ", ".join(rows.column_names)
        raise UserError(f"expected a column {missing[0]!r} in {location!r}, split {split!r}, found only {found}")
    return rows.select_columns(wanted).with_format("arrow")[:]
