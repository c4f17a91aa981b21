"""Public datasets with human labels: a table of their ids and columns, and a reader."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ctxsim_hf.runtime.errors import UserError


@dataclass(frozen=True)
class PublicDataset:
    """Where a dataset is on the Hub, and what its columns mean."""

    hub_id: str
    splits: tuple[str, ...] = ("test",)
    config: str | None = None
    sentences: tuple[str, ...] = ("sentence1", "sentence2")  # names of columns
    label: str | None = "score"  # name of a column; None if the order of the sentences says it, as in triplets
    label_range: tuple[float, float] = (0, 5)  # lowest and highest possible label


PUBLIC_DATASETS = {
    "sts12": PublicDataset("mteb/sts12-sts", ("test", "train")),
    "sts13": PublicDataset("mteb/sts13-sts"),
    "sts14": PublicDataset("mteb/sts14-sts"),
    "sts15": PublicDataset("mteb/sts15-sts"),
    "sts16": PublicDataset("mteb/sts16-sts"),
    "stsb": PublicDataset("mteb/stsbenchmark-sts", ("validation", "test", "train")),
    "sickr": PublicDataset("mteb/sickr-sts", label_range=(1, 5)),
    "afs": PublicDataset("ucsc/argument-facet-similarity"),
    "wikipedia-sections": PublicDataset(
        "sentence-transformers/wikipedia-sections",
        ("validation", "test", "train"),
        "triplet",
        sentences=("anchor", "positive", "negative"),
        label=None,
    ),
    "nli": PublicDataset(  # a premise, a sentence that it entails, and one that it contradicts
        "sentence-transformers/all-nli",
        ("dev", "test", "train"),
        "triplet",
        sentences=("anchor", "positive", "negative"),
        label=None,
    ),
}


def read_public_dataset(name: str, split: str, data_root: str | Path | None = None) -> pa.Table:
    """Return the columns of sentences and of labels of a public dataset, in this order.

    Args:
        name (`str`): A name in `PUBLIC_DATASETS`.
        split (`str`): One of its splits.
        data_root (`str` or `Path`, *optional*): Folder that holds the dataset in a folder named by its id. None
            downloads it from the Hub.
    """
    import datasets  # takes a second to import

    dataset = PUBLIC_DATASETS[name]
    location = dataset.hub_id if data_root is None else str(Path(data_root) / dataset.hub_id)
    if data_root is not None and not Path(location).is_dir():
        raise UserError(
            f"expected the dataset {dataset.hub_id!r} in the folder {location!r}, which does not exist; "
            "download it there, or leave out --data-root"
        )
    try:
        rows = datasets.load_dataset(location, dataset.config, split=split)
    except Exception as error:  # the library raises many types, all with a readable message
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        hint = "" if data_root is not None else "; without a network, name a folder that has it with --data-root"
        raise UserError(f"expected the split {split!r} of a dataset in {location!r}: {reason}{hint}") from error
    columns = [*dataset.sentences, *([dataset.label] if dataset.label else [])]
    where = f"{location!r}, split {split!r}"
    if missing := [column for column in columns if column not in rows.column_names]:
        found = ", ".join(rows.column_names)
        raise UserError(f"expected a column {missing[0]!r} in {where}, found only {found}")
    if not len(rows):
        raise UserError(f"expected examples in {where}, found none")
    table = rows.select_columns(columns).with_format("arrow")[:]
    for column in dataset.sentences:
        _check_texts(table, column, where)
    if dataset.label:
        _check_labels(labels_of(table, dataset.label), dataset, where)
    return table


def labels_of(table: pa.Table, column: str) -> np.ndarray:
    """Return a column of labels as floats, NaN where it is null."""
    labels: np.ndarray = table[column].to_numpy().astype(np.float64)
    return labels


def _check_texts(table: pa.Table, column: str, where: str) -> None:
    values = table[column]
    is_text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    row = pc.index(pc.is_null(values), True).as_py() if is_text else 0
    if row >= 0:
        found = values[row].as_py()
        raise UserError(f"expected text in the column {column!r} of {where}, but row {row} has {found!r}")


def _check_labels(labels: np.ndarray, dataset: PublicDataset, where: str) -> None:
    """Refuse labels out of range: hidden labels are often published as -1 or null."""
    low, high = dataset.label_range
    outside = np.flatnonzero(~((labels >= low) & (labels <= high)))
    if outside.size:
        raise UserError(
            f"expected a {dataset.label} from {low:g} to {high:g} in {where}, but {outside.size} of {len(labels)} are "
            f"outside, the first in row {outside[0]}: {labels[outside[0]]:g}"
        )
