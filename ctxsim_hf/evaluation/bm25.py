"""Score sentence pairs by BM25, with one sentence as the query and the other as the document.

    BM25(q, d) = sum over common words of idf * (k1 + 1) / (1 + k1 * (1 - b + b * |d| / mean length))

The score of a pair is the mean of both directions, each divided by the score of the query as its own document;
otherwise long pairs would score higher than short ones. Sentences are sets of words, as for TF-IDF.
"""

from collections.abc import Sequence

import numpy as np

from ctxsim_hf.text.lexical import TfidfCosine
from ctxsim_hf.text.words import words

K1, B = 1.5, 0.75


class Bm25:
    """BM25 as a similarity.

    Args:
        counts (`TfidfCosine`): Word counts of a corpus.
    """

    def __init__(self, counts: TfidfCosine) -> None:
        self.counts = counts
        self.mean_length = float(counts.df.sum()) / counts.num_sentences

    def similarity(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> np.ndarray:
        """Return a score from 0 to about 1 for each pair; 0 if a sentence has no words."""
        bags1, bags2 = ([set(words(sentence)) for sentence in side] for side in (sentences1, sentences2))
        vocabulary = sorted(set().union(*bags1, *bags2))
        idf = dict(zip(vocabulary, self.counts.idf(vocabulary).tolist(), strict=True))

        def score(query: set[str], document: set[str]) -> float:
            # Sorted, since the order of a set, and with it the rounding, differs between processes.
            weight = sum(idf[word] for word in sorted(query & document))
            return weight * (K1 + 1) / (1 + K1 * (1 - B + B * len(document) / self.mean_length))

        def direction(query: set[str], document: set[str]) -> float:
            return score(query, document) / own if (own := score(query, query)) else 0.0

        pairs = zip(bags1, bags2, strict=True)
        return np.array([(direction(one, other) + direction(other, one)) / 2 for one, other in pairs])
