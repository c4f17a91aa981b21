"""Count in how many sentences of a text each word occurs, and keep the counts in the Hugging Face cache."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from ctxsim_hf.runtime.cache import cached_folder
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.parallel import available_cores, ordered_map
from ctxsim_hf.text.chunking import ChunkArguments
from ctxsim_hf.text.chunks import describe_chunks, read_chunks
from ctxsim_hf.text.lexical import TfidfCosine, count_words
from ctxsim_hf.text.reading import BadDocument, Columns, Corpus
from ctxsim_hf.text.sentences import split_document

FORMAT = 5  # raise it when the same text would be counted differently
CHARS_PER_BATCH = 2_000_000  # that a worker counts at once

Counts = tuple[Counter[str], int]  # words, and the number of sentences


def count_corpus(chunks: str | None, data_root: str | Path | None) -> TfidfCosine:
    """Count the words of a folder of chunks, without held-out documents, or of all documents in `<data_root>/corpora`.

    Args:
        chunks (`str`, *optional*): Folder made by `ctxsim chunk`. None counts in the documents.
        data_root (`str` or `Path`, *optional*): Folder of datasets.
    """
    if chunks is not None:
        return _cached(describe_chunks(chunks), lambda: _count_chunks(chunks))
    folders = find_corpora(data_root)
    corpora = [Corpus(str(folder), Columns(), ChunkArguments.max_document_chars) for folder in folders]
    return _cached([corpus.fingerprint() for corpus in corpora], lambda: _count_documents(corpora))


def count_texts(texts: Iterable[str]) -> TfidfCosine:
    """Return the word counts of documents in memory."""
    counts, num_sentences = _split_and_count(list(texts))
    return TfidfCosine.from_counts(counts, num_sentences)


def find_corpora(data_root: str | Path | None) -> list[Path]:
    """Return the folders in `<data_root>/corpora`; refuse if there are none."""
    folders = sorted(Path(data_root, "corpora").glob("*/")) if data_root is not None else []
    if not folders:
        raise UserError(
            "a system that weighs words by their frequency needs text to count them in: name a folder made by "
            f"ctxsim chunk with --chunks, or a --data-root with documents in its folder corpora (it is {data_root!r})"
        )
    return folders


def _cached(made_from: Any, count: Callable[[], TfidfCosine]) -> TfidfCosine:
    return TfidfCosine.load(cached_folder("words", [FORMAT, made_from], lambda folder: count().save(folder)))


def _count_chunks(folder: str) -> TfidfCosine:
    chunks = read_chunks(folder, "train")  # held-out documents are for evaluation only
    batches = (batch["sentences"] for batch in chunks.iter(2000))
    return _count(_count_sentences, tqdm(batches, "count words", -(-len(chunks) // 2000), disable=None), len(chunks))


def _count_documents(corpora: Sequence[Corpus]) -> TfidfCosine:
    """Count in every sentence that `ctxsim chunk` would find, including those without a context."""
    total = sum(corpus.total_bytes for corpus in corpora)
    texts = _texts(tqdm(corpora, "count words", unit="corpus", disable=None))
    return _count(_split_and_count, texts, total // 1000)


def _count(count: Callable[[list[Any]], Counts], tasks: Iterable[list[Any]], size: int) -> TfidfCosine:
    counts: Counter[str] = Counter()
    num_sentences = 0
    workers = available_cores() if size > 10_000 else 1  # workers take seconds to start
    for more, number in ordered_map(count, tasks, workers):
        counts.update(more)
        num_sentences += number
    return TfidfCosine.from_counts(counts, num_sentences)


def _texts(corpora: Iterable[Corpus]) -> Iterator[list[str]]:
    texts, chars = [], 0
    for corpus in corpora:
        for document in corpus:
            if isinstance(document, BadDocument):
                raise UserError(f"{document.place}: {document.message}. Fix it, or name a folder of --chunks instead")
            texts.append(document.text)
            chars += len(document.text)
            if chars >= CHARS_PER_BATCH:
                yield texts
                texts, chars = [], 0
    yield texts


def _split_and_count(texts: list[str]) -> Counts:
    language, longest = ChunkArguments.language, ChunkArguments.max_sentence_chars
    runs = (run for text in texts for run in split_document(text, language, longest).runs)
    return count_words(sentence for run in runs for sentence in run)


def _count_sentences(chunks: list[list[str]]) -> Counts:
    return count_words(sentence for sentences in chunks for sentence in sentences)
