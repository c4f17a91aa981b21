"""Sentence encoders -> similarities: the cosine of two sentences' vectors."""

from collections.abc import Callable, Sequence

import numpy as np

from ctxsim_hf.runtime.errors import UserError

Encode = Callable[[list[str]], np.ndarray]


class EncoderSimilarity:
    """
    Args:
        encode: Sentences to their vectors, (sentences, vector size). It is given each distinct sentence once.
    """

    def __init__(self, encode: Encode) -> None:
        self.encode = encode

    def similarity(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> np.ndarray:
        """Cosines; 0 where either vector is zero."""
        places = {sentence: place for place, sentence in enumerate(dict.fromkeys([*sentences1, *sentences2]))}
        vectors = np.asarray(self.encode(list(places)))
        if vectors.ndim != 2 or len(vectors) != len(places):
            raise UserError(f"expected a vector for each of {len(places)} sentences, the encoder gave {vectors.shape}")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = vectors / np.where(lengths == 0, 1, lengths)
        first, second = ([places[sentence] for sentence in side] for side in (sentences1, sentences2))
        return np.einsum("ij,ij->i", vectors[first], vectors[second], dtype=np.float64)
