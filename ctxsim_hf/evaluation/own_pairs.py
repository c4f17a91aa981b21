"""A user's own judged pairs -> examples: scores of any range, or labels 0 and 1."""

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from ctxsim_hf.evaluation.examples import GradedPairs, LabelledPairs
from ctxsim_hf.evaluation.own_data import find_column, read_rows, split_name, split_of
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.rows import Row
from ctxsim_hf.text.sentence_checks import check_sentence

SENTENCES = ("sentence1", "sentence2")
SCORE, LABEL = "score", "label"


def load_pairs(spelling: str, split: str = "test") -> GradedPairs:
    """Read pairs with columns sentence1, sentence2 and either score or label.

    Args:
        spelling (`str`): `LOCATION` or `NAME=LOCATION`, where a location is a file (jsonl, tsv, csv, parquet), or a
            folder or id that `load_dataset` opens.
        split (`str`): Split of a folder or dataset; a file has none.
    """
    name, location = split_name(spelling)
    rows = read_rows(location, split)
    for column in SENTENCES:
        find_column(rows, [column], location)
        for row in rows:
            check_sentence(_values(row).get(column), f"{column} of {row.place}")
    judgement = find_column(rows, [SCORE, LABEL], location)
    if judgement == SCORE and LABEL in _values(rows[0]):
        raise UserError(f"expected a column {SCORE!r} or {LABEL!r} in {location!r}, found both; leave one out")
    numbers = np.array([_number(row, judgement) for row in rows])
    first, second = ([_values(row)[column] for row in rows] for column in SENTENCES)
    if judgement == SCORE:
        return GradedPairs(name, split_of(location, split), first, second, numbers)
    _check_labels(numbers, rows, location)
    return LabelledPairs(name, split_of(location, split), first, second, numbers)


def _values(row: Row) -> dict[str, Any]:
    return cast(dict[str, Any], row.values)


def _number(row: Row, column: str) -> float:
    value = _values(row).get(column)
    try:
        number = float(cast(Any, value))
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise UserError(f"{row.place}: expected a finite number in the column {column!r}, got {value!r}")
    return number


def _check_labels(labels: np.ndarray, rows: Sequence[Row], location: str) -> None:
    if (wrong := np.flatnonzero((labels != 0) & (labels != 1))).size:
        raise UserError(
            f"{rows[wrong[0]].place}: expected a {LABEL} 0 or 1, got {labels[wrong[0]]:g}; "
            f"call the column {SCORE!r} if it has grades"
        )
    if len(np.unique(labels)) == 1:
        raise UserError(f"expected pairs of both labels in {location!r}, but all {len(labels)} have {labels[0]:g}")
