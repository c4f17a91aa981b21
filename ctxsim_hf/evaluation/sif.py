"""Word vectors and word counts of a corpus -> sentence vectors by SIF or uSIF: weighted means of words, without the
directions that all sentences have in common.

SIF: Arora et al. 2017, A Simple but Tough-to-Beat Baseline for Sentence Embeddings. A word weighs a / (a + p), where p
is its share of the corpus. The paper removes one direction; the benchmark of the package fse has it with ten.

uSIF: Ethayarajh 2018, Unsupervised Random Walk Sentence Embeddings: A Strong but Simple Baseline, as in the author's
code, github.com/kawine/usif. A word weighs a / (a / 2 + p), where a follows from the corpus; each dimension is
normalised over the words of a sentence; five directions are removed, each in proportion to its variance.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from ctxsim_hf.evaluation.word_vectors import Vectors, WordVectors
from ctxsim_hf.text.lexical import TfidfCosine

SIF_A = 1e-3
SIF_COMPONENTS, USIF_COMPONENTS = 10, 5

Sentences = Sequence[Sequence[str]]  # as words that have vectors


class Sif(WordVectors):
    """SIF. Directions are those of the sentences of one call, so a vector depends on all of them.

    Args:
        path (`str`): The word vectors, as in `WordVectors`.
        counts (`TfidfCosine`): Word counts of a corpus.
    """

    def __init__(self, path: str, counts: TfidfCosine) -> None:
        super().__init__(path)
        self.counts = counts

    def tokens(self, sentence: str) -> list[str]:
        """Return the words of a sentence. Marks are not counted in a corpus and would look like rare words, as would
        n't, which stands for not."""
        words = [token for token in super().tokens(sentence) if token[0].isalnum()]
        return ["not" if word.lower() == "n't" else word for word in words]

    def average(self, sentences: Sentences, vectors: Vectors) -> np.ndarray:
        weights = sif_weights(self._shares(vectors))
        return remove_components(self._weighted_means(sentences, vectors, weights), SIF_COMPONENTS)

    def _weighted_means(self, sentences: Sentences, vectors: Vectors, weights: np.ndarray) -> np.ndarray:
        weighted = {word: weight * vectors[word] for word, weight in zip(vectors, weights, strict=True)}
        return super().average(sentences, weighted)

    def _shares(self, words: Iterable[str]) -> np.ndarray:
        """Return the share of each word among all words of the corpus, where a sentence counts a word once; one that
        the corpus does not hold has the share of the rarest."""
        seen = self.counts.document_frequency([word.lower() for word in words])
        return np.maximum(seen, 1) / self.counts.words.counts.sum()


class USif(Sif):
    """uSIF, with the same arguments."""

    def average(self, sentences: Sentences, vectors: Vectors) -> np.ndarray:
        counts = self.counts.words.counts
        length = float(np.mean([len(words) for words in sentences]))
        weights = usif_weights(self._shares(vectors), counts / counts.sum(), length)
        nothing = np.zeros_like(next(iter(vectors.values())))
        norms = np.stack(
            [np.linalg.norm([vectors[word] for word in words] or [nothing], axis=0) for words in sentences]
        )
        means = self._weighted_means(sentences, vectors, weights) / np.where(norms == 0, 1, norms)
        return remove_components(means, USIF_COMPONENTS, by_variance=True)


def sif_weights(shares: np.ndarray) -> np.ndarray:
    """Return the weights of words with these shares of the corpus."""
    return SIF_A / (SIF_A + shares)


def usif_weights(shares: np.ndarray, all_shares: np.ndarray, length: float) -> np.ndarray:
    """Return the weights of words.

    Args:
        shares (`np.ndarray`): Their shares of the corpus.
        all_shares (`np.ndarray`): The shares of all words of the corpus.
        length (`float`): Mean number of words in a sentence.
    """
    size = len(all_shares)
    threshold = 1 - (1 - 1 / size) ** max(length, 1)
    alpha = np.mean(all_shares > threshold)
    # a = (1 - alpha) / (alpha size / 2) is infinite where no word is that frequent; its inverse never is.
    inverse = alpha * size / 2 / (1 - alpha)
    return np.asarray(1 / (1 / 2 + shares * inverse))


def remove_components(vectors: np.ndarray, number: int, by_variance: bool = False) -> np.ndarray:
    """Remove the main directions of vectors, which are not centred.

    Args:
        vectors (`np.ndarray`): (vectors, vector size).
        number (`int`): How many directions; of few vectors or dimensions fewer, so that one is left.
        by_variance (`bool`): Remove a direction only in the share that it has of the variance along all of these.
    """
    variances, directions = np.linalg.eigh(vectors.T @ vectors)  # ascending
    first = len(variances) - min(number, min(vectors.shape) - 1)
    variances, directions = variances[first:], directions[:, first:]
    strengths = variances / variances.sum() if by_variance else np.ones(len(variances))
    return vectors - (vectors @ directions * strengths) @ directions.T
