"""BM25 of sentence pairs: the score search engines give, with one sentence as the query and the other as the document.

    BM25(q, d) = sum over common words of idf * (k1 + 1) / (1 + k1 * (1 - b + b * |d| / mean length))

A pair scores the mean of both directions, each divided by what the query would score as its own document: else a long
pair would be more alike than a short one. Sentences are sets of words, as for TF-IDF.
"""

from collections.abc import Sequence

import numpy as np

from ctxsim_hf.text.lexical import TfidfCosine
from ctxsim_hf.text.words import words

K1, B = 1.5, 0.75


class Bm25:
    """
    Args:
        counts (`TfidfCosine`): Word counts of a corpus.
    """

    def __init__(self, counts: TfidfCosine) -> None:
        self.counts = counts
        self.mean_length = float(counts.df.sum()) / counts.num_sentences

    def similarity(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> np.ndarray:
        """From 0 to about 1; a sentence without words has 0 with every sentence."""
        bags1, bags2 = ([set(words(sentence)) for sentence in side] for side in (sentences1, sentences2))
        vocabulary = sorted(set().union(*bags1, *bags2))
        idf = dict(zip(vocabulary, self.counts.idf(vocabulary).tolist(), strict=True))

        def score(query: set[str], document: set[str]) -> float:
            # Sorted, since the order of a set differs from one process to the next, and so would the rounding.
            weight = sum(idf[word] for word in sorted(query & document))
            return weight * (K1 + 1) / (1 + K1 * (1 - B + B * len(document) / self.mean_length))

        def direction(query: set[str], document: set[str]) -> float:
            return score(query, document) / own if (own := score(query, query)) else 0.0

        pairs = zip(bags1, bags2, strict=True)
        return np.array([(direction(one, other) + direction(other, one)) / 2 for one, other in pairs])
