"""Sentence encoders as signals: two sentences -> the cosine of their vectors."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from ctxsim_hf.encoder.vector_checks import check_vectors
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.pretrained import explain_opening

Encode = Callable[[list[str]], np.ndarray]


class EncoderSignal:
    """The signal `encoder`.

    Args:
        encode: Maps sentences to vectors, (sentences, vector size). It gets each distinct sentence once.
    """

    def __init__(self, encode: Encode) -> None:
        self.encode = encode

    @classmethod
    def open(cls, folder: Path) -> "EncoderSignal":
        """Open a surrogate, or any folder that SentenceTransformer opens."""
        from ctxsim_hf.encoder.sentence_encoder import SentenceEncoder

        try:
            encoder = SentenceEncoder.from_pretrained(folder)
        except UserError:  # transformers does not know every model that sentence-transformers opens
            return cls(_sentence_transformer(folder))
        return cls(lambda sentences: np.asarray(encoder.encode(sentences)))

    def vectors(self, sentences: Sequence[str]) -> np.ndarray:
        """Return vectors of length 1, except where the encoder gives zeros: (sentences, vector size)."""
        vectors = np.asarray(self.encode(list(sentences)))
        if vectors.ndim != 2 or len(vectors) != len(sentences):
            raise UserError(
                f"expected a vector for each of {len(sentences)} sentences, got {vectors.shape} from the encoder"
            )
        lengths = np.linalg.norm(check_vectors(vectors), axis=1, keepdims=True)
        return vectors / np.where(lengths == 0, 1, lengths)

    def similarity(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> np.ndarray:
        """Return the cosine of each pair, 0 if either vector is zero."""
        places = {sentence: place for place, sentence in enumerate(dict.fromkeys([*sentences1, *sentences2]))}
        vectors = self.vectors(list(places))
        first, second = ([places[sentence] for sentence in side] for side in (sentences1, sentences2))
        return np.einsum("ij,ij->i", vectors[first], vectors[second], dtype=np.float64)


def _sentence_transformer(folder: Path) -> Encode:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise UserError(
            f"{str(folder)!r} is not a surrogate, and opening it as another encoder needs sentence-transformers: "
            "pip install sentence-transformers"
        ) from error
    with explain_opening("a sentence encoder", folder):
        model = SentenceTransformer(str(folder), trust_remote_code=False)
    return lambda sentences: np.asarray(model.encode(sentences, show_progress_bar=False))
