"""BM25, the score search engines give: of documents for a query, and of sentence pairs.

`bm25_vectors` is the score itself, for retrieval. Of a pair, one sentence is the query and the other the document:

    BM25(q, d) = sum over common words of idf * (k1 + 1) / (1 + k1 * (1 - b + b * |d| / mean length))

The score of a pair is the mean of both directions, each divided by the score of the query as its own document;
otherwise long pairs would score higher than short ones. Sentences are sets of words, as for TF-IDF.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array, diags_array

from ctxsim_hf.text.bags import count_matrix
from ctxsim_hf.text.bm25_weights import K1, B, bm25_idf, saturated
from ctxsim_hf.text.lexical import TfidfCosine
from ctxsim_hf.text.words import words


def bm25_vectors(queries: Sequence[str], documents: Sequence[str]) -> tuple[csr_array, csr_array]:
    """Return vectors of queries and of documents, (queries, words) and (documents, words), whose product is BM25:

        sum over the query's words, repeated ones too, of idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * |d| / mean))

    with idf = ln(1 + (documents - df + 0.5) / (df + 0.5)), which is never below 0; all is counted in these documents.
    """
    counts, _ = count_matrix([Counter(words(text)) for text in (*queries, *documents)])
    asked, held = counts[: len(queries)], counts[len(queries) :].tocoo()
    df = np.bincount(held.col, minlength=held.shape[1])
    lengths = held.sum(axis=1)
    mean = lengths.mean() or 1  # no document has a word
    weights = saturated(held.data, lengths[held.row], mean)
    weighted = csr_array((weights, (held.row, held.col)), shape=held.shape)
    return asked, weighted @ diags_array(bm25_idf(len(documents), df))


class Bm25:
    """BM25 as a similarity.

    Args:
        counts (`TfidfCosine`): Word counts of a corpus.
    """

    def __init__(self, counts: TfidfCosine) -> None:
        self.counts = counts
        self.mean_length = float(counts.words.counts.sum()) / counts.num_sentences

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
