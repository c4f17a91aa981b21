"""Turn a harvest, or a dataset published from it, into the rows that a surrogate is trained and evaluated on.

Both are folders with `data/<split>-*.parquet`, columns sentence1, sentence2, score and perhaps spread. The arrays are
kept in the Hugging Face cache under a digest of what they were made from.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash
from tqdm import tqdm
from transformers import TokenizersBackend

from ctxsim_hf.runtime.cache import cached_folder
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.fetch import fetch_folder
from ctxsim_hf.runtime.files import describe_file
from ctxsim_hf.runtime.record import STAGE_FILE, describe_stage
from ctxsim_hf.surrogate.labelled_rows import LabelledRows, join_rows, tokenize_rows
from ctxsim_hf.text.lexical import TfidfCosine

FORMAT = 2  # part of the digest; raise it when the arrays change
SENTENCES = ("sentence1", "sentence2")
VALIDATION_PAIRS = 100_000  # at most


@dataclass(frozen=True)
class SurrogateData:
    """The rows to train on and to validate on."""

    train: LabelledRows
    validation: LabelledRows
    tfidf: np.ndarray | None = None  # TF-IDF cosine of each validation pair, with idf of the training sentences


@dataclass(frozen=True)
class PairFolder:
    """A folder of labelled pairs."""

    path: Path

    @classmethod
    def find(cls, pairs: str) -> "PairFolder":
        """Open a local folder or a dataset on the Hub."""
        expected = "a folder of pairs, as `ctxsim harvest` makes it,"
        return cls(fetch_folder(pairs, expected, repo_type="dataset", allow_patterns=["data/*.parquet"]))

    def describe(self) -> dict[str, Any]:
        """Describe the pairs for stage.json."""
        if not self.path.exists() or (self.path / STAGE_FILE).exists():
            return describe_stage(self.path, "harvest")
        files = {path.name: describe_file(path) for split in ("train", "validation") for path in self.files(split)}
        return {"xxh3_128": xxhash.xxh3_128_hexdigest(json.dumps(files).encode())}

    def files(self, split: str) -> list[Path]:
        """Return the files of a split."""
        found = sorted(self.path.glob(f"data/{split}-*.parquet"))
        if not found:
            raise UserError(
                f"{str(self.path)!r} has no {split} split: expected files data/{split}-*.parquet there, "
                "as `ctxsim harvest` and the published dataset have them"
            )
        return found

    def tables(self, split: str) -> Iterator[pa.Table]:
        """Yield a table for each file of a split, so that memory holds the text of one."""
        for path in tqdm(self.files(split), desc=f"read {split}", unit="file", disable=None):
            columns = pq.read_schema(path).names
            if missing := [name for name in (*SENTENCES, "score") if name not in columns]:
                raise UserError(f"expected a column {missing[0]!r} in {str(path)!r}, found only {', '.join(columns)}")
            table = pq.read_table(path, columns=[*SENTENCES, "score", *(["spread"] if "spread" in columns else [])])
            if empty := [name for name in (*SENTENCES, "score") if table[name].null_count]:
                raise UserError(f"expected a value in every row of {str(path)!r}, but {empty[0]!r} has empty ones")
            if not table.num_rows:
                raise UserError(f"expected pairs in {str(path)!r}, but it has none")
            yield table

    def open(self, tokenizer: TokenizersBackend, tokenizer_digest: str) -> SurrogateData:
        """Return the tokenised pairs of the train and validation split, from the cache if they are there."""
        made_from = [FORMAT, self.describe()["xxh3_128"], tokenizer_digest]
        folder = cached_folder("pairs", made_from, lambda empty: _build(empty, self, tokenizer))
        train, validation = (LabelledRows.load(folder / split) for split in ("train", "validation"))
        return SurrogateData(train, validation, np.load(folder / "tfidf.npy"))


def _build(folder: Path, source: PairFolder, tokenizer: TokenizersBackend) -> None:
    source.files("validation")  # fails before the long work
    parts: list[LabelledRows] = []

    def train_sentences() -> Iterator[str]:
        for table in source.tables("train"):
            rows, sentences = rows_of(tokenizer, table)
            parts.append(rows)
            yield from sentences

    lexical = TfidfCosine.from_sentences(train_sentences())
    join_rows(parts).save(folder / "train")
    table = pa.concat_tables(source.tables("validation"), promote_options="default").slice(0, VALIDATION_PAIRS)
    rows, sentences = rows_of(tokenizer, table)
    rows.save(folder / "validation")
    np.save(folder / "tfidf.npy", lexical_cosines(lexical, rows, sentences))


def rows_of(tokenizer: TokenizersBackend, table: pa.Table) -> tuple[LabelledRows, list[str]]:
    """Tokenise a table of pairs; return its rows and the distinct sentences."""
    spreads = table["spread"].to_numpy() if "spread" in table.column_names else None
    return tokenize_rows(tokenizer, [table[name] for name in SENTENCES], table["score"].to_numpy(), spreads)


def lexical_cosines(lexical: TfidfCosine, rows: LabelledRows, sentences: list[str]) -> np.ndarray:
    """Return the TF-IDF cosine of each pair."""
    first, second = ([sentences[member] for member in side] for side in rows.members.T)
    return lexical.similarity(first, second)
