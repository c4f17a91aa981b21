"""Sentences of a corpus -> word counts -> TF-IDF cosine of sentence pairs, a similarity that needs no model.

A sentence is the set of its words. The weight of a word is idf = ln(sentences / (df + 1)), but at least 0, where df is
the number of sentences of the corpus that contain it. Letter n-grams are counted too, for letters.py.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
from scipy.sparse import csr_array, diags_array

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import write_json
from ctxsim_hf.text.bags import bag_matrix, unit_rows
from ctxsim_hf.text.hashed_counts import HashedCounts
from ctxsim_hf.text.letter_ngrams import count_ngrams
from ctxsim_hf.text.sentence_checks import check_pairs
from ctxsim_hf.text.words import words

FORMAT = 3  # of the files, which hold hashes of words; raise it whenever the words of a text change
UNSEEN_IDF = 14.0
ABOUT = "tfidf.json"


class TfidfCosine:
    """TF-IDF cosine with the word counts of a corpus, made by `from_sentences` or `load`.

    Args:
        words (`HashedCounts`): Number of sentences that contain each word of the corpus.
        num_sentences (`int`): Number of sentences in the corpus.
        ngrams (`Callable`): Returns the same for letter n-grams, counted once for each word that holds them.
    """

    def __init__(self, words: HashedCounts, num_sentences: int, ngrams: Callable[[], HashedCounts]) -> None:
        self.words, self.num_sentences, self._make_ngrams = words, num_sentences, ngrams

    @cached_property
    def ngrams(self) -> HashedCounts:
        """The counts of letter n-grams, which take a while to make, and not every use needs them."""
        return self._make_ngrams()

    @classmethod
    def from_sentences(cls, sentences: Iterable[str]) -> Self:
        """Count the words of a corpus in one pass."""
        return cls.from_counts(*count_words(sentences))

    @classmethod
    def from_counts(cls, counts: Counter[str], num_sentences: int) -> Self:
        """Make one from the result of `count_words`, or from the sum of its results for parts of a corpus."""
        if not num_sentences:
            raise UserError("expected sentences to count words in, but there are none")
        return cls(HashedCounts.of(counts), num_sentences, lambda: HashedCounts.of(count_ngrams(counts)))

    def __add__(self, other: "TfidfCosine") -> "TfidfCosine":
        """Return the counts of two parts of a corpus together."""
        number = self.num_sentences + other.num_sentences
        return TfidfCosine(self.words + other.words, number, lambda: self.ngrams + other.ngrams)

    def __sub__(self, other: "TfidfCosine") -> "TfidfCosine":
        """Return the counts of a corpus without a part of it."""
        number = self.num_sentences - other.num_sentences
        return TfidfCosine(self.words - other.words, number, lambda: self.ngrams - other.ngrams)

    def save(self, folder: str | Path) -> None:
        """Write five files into a folder, which may hold others."""
        self.words.save(Path(folder), "words")
        self.ngrams.save(Path(folder), "ngrams")
        about = {"sentences": self.num_sentences, "words": len(self.words), "ngrams": len(self.ngrams)}
        write_json(Path(folder) / ABOUT, {"format": FORMAT, **about})

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Open the files that `save` wrote; the arrays stay on disk."""
        folder = Path(folder)
        try:
            about = json.loads((folder / ABOUT).read_text("utf-8"))
            found_format = about.get("format")
            if found_format != FORMAT:
                raise UserError(
                    f"the word counts in {str(folder)!r} are of format {found_format}, expected {FORMAT}; "
                    "make the folder again"
                )
            tables = {name: HashedCounts.load(folder, name) for name in ("words", "ngrams")}
            num_sentences, expected = about["sentences"], {name: about[name] for name in tables}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UserError(f"expected the files of TfidfCosine.save in {str(folder)!r}: {error}") from error
        if (found := {name: len(table) for name, table in tables.items()}) != expected:
            raise UserError(
                f"the word counts in {str(folder)!r} do not belong together: {ABOUT} speaks of {expected}, "
                f"found {found}; save them again"
            )
        return cls(tables["words"], num_sentences, lambda: tables["ngrams"])

    def document_frequency(self, vocabulary: Iterable[str]) -> np.ndarray:
        """Return in how many sentences each word stands."""
        return self.words(vocabulary)

    def idf(self, vocabulary: Iterable[str]) -> np.ndarray:
        """Return the weight of each word; one that the corpus does not hold weighs 14."""
        df = self.document_frequency(vocabulary)
        return np.where(df > 0, np.log(self.num_sentences / (df + 1)).clip(min=0), UNSEEN_IDF)

    def similarity(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> np.ndarray:
        """Return the cosine of each pair, from 0 to 1. A sentence without words of positive weight has similarity 0
        with every sentence, including itself."""
        sentences1, sentences2 = check_pairs(sentences1, sentences2)
        bags1, bags2 = ([set(words(sentence)) for sentence in side] for side in (sentences1, sentences2))
        vocabulary = list(set().union(*bags1, *bags2))
        squares = dict(zip(vocabulary, (self.idf(vocabulary) ** 2).tolist(), strict=True))

        def squared_length(bag: set[str]) -> float:
            # The result of fsum does not depend on the order, and the order of a set differs between processes.
            return math.fsum(map(squares.__getitem__, bag))

        cosines = np.zeros(len(bags1))
        for pair, (bag1, bag2) in enumerate(zip(bags1, bags2, strict=True)):
            if common := squared_length(bag1 & bag2):
                cosines[pair] = common / math.sqrt(squared_length(bag1) * squared_length(bag2))
        return cosines

    def vectors(self, sentences: Sequence[str]) -> csr_array:
        """Return unit vectors, to be compared with others of the same call: (sentences, words of all)."""
        held, vocabulary = bag_matrix([set(words(sentence)) for sentence in sentences])
        return unit_rows(csr_array(held @ diags_array(self.idf(vocabulary))))


def count_words(sentences: Iterable[str]) -> tuple[Counter[str], int]:
    """Return the number of sentences that contain each word, and the number of sentences."""
    counts: Counter[str] = Counter()
    num_sentences = 0
    for sentence in sentences:
        counts.update(set(words(sentence)))
        num_sentences += 1
    return counts, num_sentences
