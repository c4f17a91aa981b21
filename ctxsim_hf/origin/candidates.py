"""Find candidate contexts for a sentence: those of the chunks nearest by TF-IDF, the most promising first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ctxsim_hf.context_models.base import Ranker
from ctxsim_hf.origin.context_index import ContextIndex, sentence_key


@dataclass(frozen=True)
class Candidates:
    """Find the candidate contexts of sentences.

    Args:
        index (`ContextIndex`): The index to search.
        screen_chunks (`int`): Number of chunks that TF-IDF selects for a sentence.
        ranker (`tuple[str, Ranker]`, *optional*): The context model that ranks, with its name in the index. None keeps
            the order of screening: a context of every chunk, nearest chunk first, then a second one of every chunk.
    """

    index: ContextIndex
    screen_chunks: int
    ranker: tuple[str, Ranker] | None = None

    def __call__(self, sentences: Sequence[str]) -> Iterator[np.ndarray]:
        """Yield the contexts of each sentence; none holds one of these sentences on a side."""
        keys = np.array([sentence_key(sentence) for sentence in sentences], dtype=np.uint64)
        prepared = self.ranker[1].prepare_sentences(sentences) if self.ranker else None
        found = self.index.tfidf.search(sentences, self.screen_chunks)
        for place, (chunks, _) in enumerate(found):
            if self.ranker is None:
                yield self.index.without(keys, self._in_turn(chunks))
            else:
                contexts = self.index.without(keys, self.index.screened_contexts(np.sort(chunks)))
                yield self._ranked(prepared[place : place + 1], contexts)  # type: ignore[index]

    def _ranked(self, sentence: object, contexts: np.ndarray) -> np.ndarray:
        assert self.ranker is not None
        name, ranker = self.ranker
        (scores,) = ranker.rank(sentence, self.index.contexts(contexts).for_model(name))
        return contexts[np.argsort(-scores, kind="stable")]

    def _in_turn(self, chunks: np.ndarray) -> np.ndarray:
        contexts = self.index.screened_contexts(chunks)  # chunk after chunk
        store = self.index.chunks
        turns = contexts - store.chunk_starts[store.chunks_of(contexts)]
        return contexts[np.argsort(turns, kind="stable")]
