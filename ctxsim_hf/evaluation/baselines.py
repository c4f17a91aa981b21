"""A baseline's name -> something that scores pairs, to hold a system against."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from tqdm import tqdm

from ctxsim_hf.corpus.chunking import ChunkArguments
from ctxsim_hf.corpus.chunks import read_chunks
from ctxsim_hf.corpus.lexical import TfidfCosine
from ctxsim_hf.corpus.reading import Columns, Corpus, Flaw
from ctxsim_hf.corpus.sentences import split_document
from ctxsim_hf.errors import UserError


class Similarity(Protocol):
    """What evaluation asks of a system: one score a pair, higher for more alike; the scale does not matter."""

    def similarity(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> np.ndarray: ...


def tfidf(chunks: str | None, data_root: str | None) -> TfidfCosine:
    """Word weights from a folder of chunks, else from the documents in `<data_root>/corpora`."""
    if chunks is not None:
        return TfidfCosine.from_sentences(_chunked_sentences(chunks))
    folders = sorted(Path(data_root, "corpora").glob("*/")) if data_root is not None else []
    if not folders:
        raise UserError(
            "the baseline tfidf weighs words by how common they are: name a folder made by ctxsim chunk "
            f"with --chunks, or a --data-root with documents in its folder corpora (it is {data_root!r})"
        )
    return TfidfCosine.from_sentences(_document_sentences(folders))


# Name -> its maker, which is given --chunks and --data-root and takes what it needs.
BASELINES: dict[str, Callable[[str | None, str | None], Similarity]] = {
    "tfidf": tfidf,
}


def _chunked_sentences(folder: str) -> Iterator[str]:
    chunks = read_chunks(folder, "train")  # held-out documents are for evaluation alone
    with tqdm(total=len(chunks), desc="count words", unit="chunk", disable=None) as bar:
        for batch in chunks.iter(1000):
            for sentences in batch["sentences"]:
                yield from sentences
            bar.update(len(batch["sentences"]))


def _document_sentences(folders: Sequence[Path]) -> Iterator[str]:
    """Every sentence that `ctxsim chunk` would find, those without a context too."""
    for folder in tqdm(folders, desc="count words", unit="corpus", disable=None):
        for document in Corpus(str(folder), Columns(), ChunkArguments.max_document_chars):
            if isinstance(document, Flaw):
                raise UserError(f"{document.place}: {document.message}. Mend it, or name a folder of --chunks instead")
            parts = split_document(document.text, ChunkArguments.language, ChunkArguments.max_sentence_chars)
            for run in parts.runs:
                yield from run
