"""The arguments that `ctxsim duplicates` and `ctxsim cluster` share: what to read, and how similar is similar."""

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Gt, Le, Lt
from transformers.hf_argparser import HfArg

from ctxsim_hf.mining.sentence_source import (
    Sentences,
    sentences_of_chunks,
    sentences_of_documents,
    sentences_of_lines,
)
from ctxsim_hf.mining.sentence_vectors import encode_sentences
from ctxsim_hf.mining.unrelated import UnrelatedPairs, rare_percentile
from ctxsim_hf.runtime.arguments import Arguments
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.validation import Count, CountOrZero, Seed
from ctxsim_hf.runtime.working import WorkingFolder, refuse_same_file
from ctxsim_hf.text.lines import is_pipe

SOURCES = ("chunks", "corpus", "input")
ENDINGS = (".jsonl", ".tsv", ".html")


@dataclass(kw_only=True)
class MiningArguments(Arguments):
    """What to read, and how similar is similar."""

    surrogate: str = HfArg(help="Folder or id of a surrogate, or of any encoder that SentenceTransformer opens.")
    chunks: str | None = HfArg(default=None, help="Read the sentences of this folder made by ctxsim chunk.")
    corpus: str | None = HfArg(default=None, help="Read documents: a file, a folder of files or the id of a dataset.")
    input: str | None = HfArg(default=None, help="Read a text file with one sentence per line.")
    text_column: str = HfArg(default="text", help="--corpus: column that holds the text.")
    language: str = HfArg(default="en", help="--corpus: language code for the sentence splitter.")
    min_words: CountOrZero = HfArg(default=4, help="Leave out sentences of fewer words.")
    threshold: Annotated[float, Gt(-1), Le(1)] | None = HfArg(
        default=None, help="The lowest similarity; by default the one that --percentile gives."
    )
    percentile: Annotated[float, Ge(0), Lt(100)] | None = HfArg(
        default=None,
        help="The lowest similarity as a percentile of that of unrelated pairs; by default one so high that unrelated "
        "pairs are rare among all pairs of the corpus.",
    )
    output: list[str] = HfArg(
        default_factory=list, help=f"Files to write, whose names end in {', '.join(ENDINGS)}; by default none."
    )
    num_processes: Count = HfArg(default=1, help="Number of processes that encode.")
    seed: Seed = HfArg(default=0, help="Seed of the sample of unrelated pairs.")

    unrelated_neighbours: ClassVar[float]  # of a sentence on average, at the default threshold

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(given := [name for name in SOURCES if getattr(self, name) is not None]) != 1:
            named = " and ".join(f"--{name}" for name in given) or "none"
            raise UserError(f"expected one of --chunks, --corpus and --input, got {named}")
        if self.threshold is not None and self.percentile is not None:
            raise UserError("--threshold and --percentile say the same thing; leave one out")
        for name in self.output:
            if not str(name).endswith(ENDINGS):
                raise UserError(f"--output must end in {', '.join(ENDINGS)}, got {str(name)!r}")
            for read in filter(None, (self.corpus, self.input)):
                if not is_pipe(read):
                    refuse_same_file(read, name)

    def read(self) -> Sentences:
        """Read the different sentences."""
        if self.chunks is not None:
            found = sentences_of_chunks(self.chunks)
        elif self.corpus is not None:
            found = sentences_of_documents(self.corpus, self.text_column, self.language)
        else:
            found = sentences_of_lines(str(self.input))
        return Sentences.collect(found, self.min_words)

    @contextlib.contextmanager
    def vectors(self, sentences: Sentences) -> Iterator[np.ndarray]:
        """Encode sentences into a working folder beside the first output, or a temporary one; a killed run resumes,
        also if it was comparing already."""
        with tempfile.TemporaryDirectory() as scratch:
            first = self.output[0] if self.output else Path(scratch, "sentences")
            with WorkingFolder(f"{first}.vectors") as working:
                working.partial.mkdir(exist_ok=True)
                file = working.partial / "vectors.npy"
                yield encode_sentences(self.surrogate, sentences.texts, file, self.num_processes)
                working.discard()

    def choose_threshold(self, vectors: np.ndarray) -> "Threshold":
        """Return the threshold that was given, or the one of a percentile of unrelated pairs."""
        if self.threshold is not None:
            return Threshold(self.threshold, None)
        percentile = self.percentile
        if percentile is None:
            percentile = rare_percentile(len(vectors), self.unrelated_neighbours)
        return Threshold(UnrelatedPairs.sample(vectors, self.seed).threshold(percentile), percentile)


@dataclass(frozen=True)
class Threshold:
    """The lowest similarity."""

    similarity: float
    percentile: float | None  # of unrelated pairs; None if the similarity was given

    def __str__(self) -> str:
        if self.percentile is None:
            return f"similarity of at least {self.similarity:.3f}"
        return f"similarity of at least {self.similarity:.3f}, above {self.percentile:.7g} % of unrelated pairs"
