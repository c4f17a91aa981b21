"""Sentences of a corpus -> word counts -> TF-IDF cosine of sentence pairs, a similarity that needs no model.

A sentence is the set of its words. The weight of a word is idf = ln(sentences / (df + 1)), but at least 0, where df is
the number of sentences of the corpus that contain it.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

import numpy as np
import xxhash
from scipy.sparse import csr_array, diags_array

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import write_json, writing
from ctxsim_hf.text.bags import bag_matrix, unit_rows
from ctxsim_hf.text.sentence_checks import check_pairs
from ctxsim_hf.text.words import words

FORMAT = 2  # of the files, which hold hashes of words; raise it whenever the words of a text change
UNSEEN_IDF = 14.0
_KEYS, _DF, _ABOUT = "tfidf_keys.npy", "tfidf_df.npy", "tfidf.json"


class TfidfCosine:
    """TF-IDF cosine with the word counts of a corpus, made by `from_sentences` or `load`.

    Args:
        keys (`np.ndarray`): Sorted hashes of the words of the corpus: eight bytes for each word, so that a vocabulary
            of any size can be searched on disk.
        df (`np.ndarray`): Number of sentences that contain each word.
        num_sentences (`int`): Number of sentences in the corpus.
    """

    def __init__(self, keys: np.ndarray, df: np.ndarray, num_sentences: int) -> None:
        self.keys, self.df, self.num_sentences = keys, df, num_sentences

    @classmethod
    def from_sentences(cls, sentences: Iterable[str]) -> Self:
        """Count the words of a corpus in one pass."""
        return cls.from_counts(*count_words(sentences))

    @classmethod
    def from_counts(cls, counts: Counter[str], num_sentences: int) -> Self:
        """Make one from the result of `count_words`, or from the sum of its results for parts of a corpus."""
        if not num_sentences:
            raise UserError("expected sentences to count words in, but there are none")
        keys = _hash(counts)
        order = np.argsort(keys)
        return cls(keys[order], np.fromiter(counts.values(), np.int64, len(counts))[order], num_sentences)

    def save(self, folder: str | Path) -> None:
        """Write three files into a folder, which may hold others."""
        for name, array in ((_KEYS, self.keys), (_DF, self.df)):
            with writing(Path(folder) / name) as temporary, temporary.open("wb") as file:
                np.save(file, array, allow_pickle=False)
        write_json(Path(folder) / _ABOUT, {"format": FORMAT, "sentences": self.num_sentences, "words": len(self.keys)})

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Open the files that `save` wrote; the arrays stay on disk."""
        try:
            about = json.loads((Path(folder) / _ABOUT).read_text("utf-8"))
            keys, df = (np.load(Path(folder) / name, mmap_mode="r", allow_pickle=False) for name in (_KEYS, _DF))
            found, num_sentences, num_words = about.get("format"), about["sentences"], about["words"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UserError(
                f"expected the files {_ABOUT}, {_KEYS} and {_DF} of TfidfCosine.save in {str(folder)!r}: {error}"
            ) from error
        if found != FORMAT:
            raise UserError(
                f"the word counts in {str(folder)!r} are of format {found}, expected {FORMAT}; make the folder again"
            )
        if not len(keys) == len(df) == num_words:
            raise UserError(
                f"the TF-IDF files in {str(folder)!r} do not belong together: expected {num_words} words, "
                f"found {len(keys)} keys and {len(df)} counts; save them again"
            )
        return cls(keys, df, num_sentences)

    def document_frequency(self, vocabulary: Iterable[str]) -> np.ndarray:
        """Return in how many sentences each word stands."""
        keys = _hash(vocabulary)
        places = np.searchsorted(self.keys, keys)
        seen = places < len(self.keys)
        seen[seen] = self.keys[places[seen]] == keys[seen]
        found = np.zeros(len(keys), np.int64)
        found[seen] = self.df[places[seen]]
        return found

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


def _hash(vocabulary: Iterable[str]) -> np.ndarray:
    return np.array([xxhash.xxh3_64_intdigest(word.encode()) for word in vocabulary], dtype=np.uint64)
