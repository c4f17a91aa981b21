"""The arguments of `ctxsim chunk`."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from annotated_types import Ge
from transformers.hf_argparser import HfArg

from ctxsim_hf.runtime.arguments import StageArguments
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.validation import Count, Positive, Share
from ctxsim_hf.text.chunks import CHUNK_COLUMNS
from ctxsim_hf.text.lines import MAX_LINE_BYTES
from ctxsim_hf.text.reading import Columns, Corpus


@dataclass(kw_only=True)
class ChunkArguments(StageArguments):
    corpus: list[str] = HfArg(
        help="What to read: .txt, .txt.gz, .jsonl, .jsonl.gz or .parquet files, folders of them, URLs of either "
        "(s3://, gs://, hf://), dataset ids, or - for standard input."
    )
    text_column: str = HfArg(default="text", help="Column that holds the text (jsonl, parquet, datasets).")
    id_column: str = HfArg(default="id", help="Column that identifies a document; without it, the row number does.")
    keep_columns: str = HfArg(default="", help="Columns to keep with each chunk, e.g. title,url.")
    config_name: str | None = HfArg(default=None, help="Configuration of a corpus that is a dataset id.")
    split: str = HfArg(default="train", help="Split to read of a corpus that is a dataset id.")
    language: str = HfArg(default="en", help="Language code for the sentence splitter.")
    sentences_per_chunk: Annotated[int, Ge(3)] = HfArg(default=10, help="Maximum number of sentences in a chunk.")
    max_sentence_chars: Count = HfArg(default=2000, help="A longer sentence is left out; no context spans the gap.")
    max_document_chars: Annotated[int, Ge(1000)] = HfArg(
        default=1_000_000, help="A longer document is read as several documents."
    )
    max_document_mb: Positive = HfArg(
        default=MAX_LINE_BYTES / 1_000_000, help="A longer line of JSON or row of parquet cannot be read."
    )
    held_out: Share = HfArg(default=0.02, help="Share of documents kept for evaluation, chosen by a hash of their id.")
    shard_chars: Count = HfArg(
        default=4_000_000,
        help="Characters of text in a shard: few enough to lose in a crash, enough to keep the number of files low.",
    )
    skip_bad: bool = HfArg(default=False, help="Count and skip documents that cannot be read instead of stopping.")
    workers: Count = HfArg(default=1, help="Number of processes; the output does not depend on it.")
    array: bool = HfArg(
        default=False,
        help="Make this task's share of a Slurm job array; the last task to finish completes the folder.",
    )

    unrecorded: ClassVar[tuple[str, ...]] = (*StageArguments.unrecorded, "corpus", "workers", "array")

    def __post_init__(self) -> None:
        super().__post_init__()
        for location in self.corpus:
            if Path(self.output).resolve().is_relative_to(Path(location).resolve()):
                raise UserError(
                    f"--output {self.output!r} lies inside the corpus {location!r} and would become part of it; "
                    "choose another folder"
                )
        for place, name in enumerate(self.kept_columns):
            if name in CHUNK_COLUMNS or name in self.kept_columns[:place]:
                raise UserError(
                    f"--keep-columns cannot keep {name!r}: chunks have a column of this name; rename yours"
                )
        if not re.fullmatch("[a-z]{2,3}", self.language):  # the splitter takes any string and falls back to English
            raise UserError(f"--language must be a code of two or three letters, such as en, got {self.language!r}")

    def recorded(self) -> dict[str, Any]:
        """Return the arguments that shape the output; --max-document-mb, which is newer, only if it was changed."""
        recorded = super().recorded()
        if self.max_document_mb == MAX_LINE_BYTES / 1_000_000:
            del recorded["max_document_mb"]
        return recorded

    @property
    def kept_columns(self) -> list[str]:
        return [name.strip() for name in self.keep_columns.split(",") if name.strip()]

    def corpora(self) -> list[Corpus]:
        """Return the corpora; refuse two of the same name."""
        columns = Columns(self.text_column, self.id_column, self.kept_columns)
        limits = {
            "max_document_chars": self.max_document_chars,
            "max_document_bytes": round(1_000_000 * self.max_document_mb),
        }
        corpora = [
            Corpus(location, columns, config_name=self.config_name, split=self.split, **limits)
            for location in self.corpus
        ]
        if repeated := [name for name, count in Counter(corpus.name for corpus in corpora).items() if count > 1]:
            raise UserError(f"two corpora are named {repeated[0]!r}, so their documents would share ids; rename one")
        return corpora
