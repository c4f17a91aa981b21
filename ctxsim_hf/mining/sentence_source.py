"""Chunks, documents or lines of text -> their different sentences, and where each stands first."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.chunk_arguments import ChunkArguments
from ctxsim_hf.text.chunks import read_chunks
from ctxsim_hf.text.lines import open_lines
from ctxsim_hf.text.reading import BadDocument, Columns, Corpus
from ctxsim_hf.text.sentences import split_document
from ctxsim_hf.text.words import words


@dataclass
class Sentences:
    """Different sentences, in the order of reading."""

    texts: list[str] = field(default_factory=list)
    places: list[str] = field(default_factory=list)  # the document or line of the first occurrence
    counts: list[int] = field(default_factory=list)  # how often each occurs, letter for letter

    @classmethod
    def collect(cls, found: Iterable[tuple[str, str]], min_words: int) -> "Sentences":
        """Collect sentences with their places, leaving out those of fewer words."""
        sentences, numbers = cls(), dict[str, int]()
        for text, place in found:
            number = numbers.setdefault(text, len(numbers))
            if number < len(sentences.texts):
                sentences.counts[number] += 1
            elif len(words(text)) < min_words:
                del numbers[text]
            else:
                sentences.texts.append(text)
                sentences.places.append(place)
                sentences.counts.append(1)
        if len(sentences.texts) < 2:
            raise UserError(
                f"expected two different sentences of {min_words} words or more, found {len(sentences.texts)}"
            )
        return sentences

    def __len__(self) -> int:
        return len(self.texts)


def sentences_of_chunks(folder: str) -> Iterator[tuple[str, str]]:
    """Yield the sentences of a folder made by `ctxsim chunk`, and their documents."""
    for chunk in read_chunks(folder).select_columns(["doc_id", "sentences"]):
        yield from ((sentence, chunk["doc_id"]) for sentence in chunk["sentences"])


def sentences_of_documents(corpus: str, text_column: str, language: str) -> Iterator[tuple[str, str]]:
    """Split the documents of a file, a folder or a dataset, and yield their sentences."""
    for document in Corpus(corpus, Columns(text_column), ChunkArguments.max_document_chars):
        if isinstance(document, BadDocument):
            raise UserError(f"{document.place}: {document.message}")
        for run in split_document(document.text, language, ChunkArguments.max_sentence_chars).runs:
            yield from ((sentence, document.doc_id) for sentence in run)


def sentences_of_lines(path: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of a text file, and their numbers."""
    yield from ((line, f"line {number}") for number, line in enumerate(open_lines(path), 1))
