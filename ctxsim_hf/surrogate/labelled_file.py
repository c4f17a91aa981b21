"""Read a table of pairs that people labelled, as `ctxsim label` makes it, into rows to train a surrogate on.

The file has tabs between its columns sentence1, sentence2 and label, and perhaps others. Labels are from 0 (unrelated)
to 5 (the same) and become cosines from 0 to 1; a row without a label is left out. Every tenth pair is for validation.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash
from transformers import TokenizersBackend

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.surrogate.labelled_rows import LabelledRows, tokenize_rows
from ctxsim_hf.surrogate.pair_data import SENTENCES, SurrogateData, lexical_cosines
from ctxsim_hf.surrogate.public_data import folds_of
from ctxsim_hf.text.lexical import TfidfCosine
from ctxsim_hf.text.lines import open_lines

MAX_LABEL = 5.0
FOLDS = 10
# Weights are kept for the order in which they put the validation pairs. Four pairs are in the right order by chance
# once in 24 times, which proves nothing; five once in 120 times.
MIN_VALIDATION_PAIRS = 5
MIN_PAIRS = FOLDS * MIN_VALIDATION_PAIRS


@dataclass(frozen=True)
class LabelledFile:
    """Labelled pairs of a file."""

    path: Path
    pairs: pa.Table  # sentence1, sentence2, label
    digest: str

    @classmethod
    def read(cls, path: str | Path) -> "LabelledFile":
        """Read the rows that have a label."""
        lines = list(open_lines(str(path)))
        head = lines[0].split("\t") if lines else []
        if missing := [name for name in (*SENTENCES, "label") if name not in head]:
            raise UserError(f"expected a column {missing[0]!r} in {str(path)!r}, found only {', '.join(head)}")
        rows = [(number, _row(line, head, f"{str(path)!r}, line {number}")) for number, line in enumerate(lines, 1)]
        labelled = [(number, row) for number, row in rows[1:] if row["label"].strip()]
        labels = [_label(row["label"], f"{str(path)!r}, line {number}") for number, row in labelled]
        found = len({frozenset(row[name] for name in SENTENCES) for _, row in labelled})
        if found < MIN_PAIRS:
            raise UserError(
                f"expected at least {MIN_PAIRS} different pairs with a label in {str(path)!r}, found {found}; "
                f"label more pairs, since one in {FOLDS} is for validation"
            )
        texts = {name: [row[name] for _, row in labelled] for name in SENTENCES}
        digest = xxhash.xxh3_128_hexdigest("\n".join(lines).encode())
        return cls(Path(path), pa.table(texts | {"label": labels}), digest)

    def describe(self) -> dict[str, Any]:
        """Describe the file for stage.json."""
        return {"name": self.path.name, "labels": self.pairs.num_rows, "xxh3_128": self.digest}

    def open(self, tokenizer: TokenizersBackend, tokenizer_digest: str) -> SurrogateData:
        """Tokenise the rows."""
        held_out = folds_of(self.pairs, SENTENCES, FOLDS) == 0
        train, train_sentences = self._rows(tokenizer, ~held_out)
        validation, sentences = self._rows(tokenizer, held_out)
        lexical = TfidfCosine.from_sentences(train_sentences)
        return SurrogateData(train, validation, lexical_cosines(lexical, validation, sentences))

    def _rows(self, tokenizer: TokenizersBackend, kept: np.ndarray) -> tuple[LabelledRows, list[str]]:
        table = self.pairs.filter(pa.array(kept))
        labels = table["label"].to_numpy() / MAX_LABEL
        return tokenize_rows(tokenizer, [table[name] for name in SENTENCES], labels)


def _row(line: str, head: list[str], where: str) -> dict[str, str]:
    """Return the cells of a line by their columns; an empty line has empty ones."""
    cells = line.split("\t") if line else [""] * len(head)
    if len(cells) != len(head):
        raise UserError(f"{where}: expected {len(head)} columns, got {len(cells)}")
    return dict(zip(head, cells, strict=True))


def _label(text: str, where: str) -> float:
    try:
        label = float(text.replace(",", "."))
    except ValueError:
        label = float("nan")
    if not np.isfinite(label) or not 0 <= label <= MAX_LABEL:
        raise UserError(f"{where}: expected a label from 0 to {MAX_LABEL:g}, got {text!r}")
    return label
