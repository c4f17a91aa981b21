"""An origin, a surrogate and chunks -> what the page shows, as HTML. Nothing here knows the library of the page."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from ctxsim_hf.encoder.thresholds import Thresholds
from ctxsim_hf.evaluation.bm25 import bm25_vectors
from ctxsim_hf.mining.duplicates import DuplicatePair, Duplicates
from ctxsim_hf.mining.mining_arguments import Threshold
from ctxsim_hf.mining.pair_mining import mine_pairs
from ctxsim_hf.mining.unrelated import UnrelatedPairs, rare_percentile
from ctxsim_hf.origin.background_thresholds import remember_background
from ctxsim_hf.origin.similarity import OriginSimilarity
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.surrogate.search_index import Hit, SearchIndex
from ctxsim_hf.text.chunks import read_chunks
from ctxsim_hf.text.html_page import escape, fragment, mark_words
from ctxsim_hf.text.rank_fusion import reciprocal_ranks
from ctxsim_hf.text.words import words

MAX_CHARS = 1000  # of a text that is typed
EXAMPLES = 5
EXAMPLE_WORDS = (6, 25)
EXAMPLE_SIMILARITY = 0.8  # more similar ones are copies, which need no explanation
EXAMPLE_SENTENCES = 3000  # of the documents, to draw examples from
MARKED_LETTERS = 4  # of a word that is marked in what was found
MAX_PAIRS = 300  # duplicates that are shown
CANDIDATES = 200  # similar sentences that are ranked by their words too


def check_text(text: str, what: str) -> str:
    """Return a typed text without white space around it; refuse an empty one and one that is too long."""
    if not (text := text.strip()):
        raise UserError(f"Type {what}.")
    if len(text) > MAX_CHARS:
        raise UserError(f"{what.capitalize()} may have {MAX_CHARS:,} characters, and this has {len(text):,}.")
    return text


class Comparison:
    """Compares two sentences by an origin."""

    def __init__(self, origin: OriginSimilarity) -> None:
        self.origin = origin

    def explain(self, first: str, second: str) -> str:
        """Return the explanation of the similarity of two sentences."""
        sentences = check_text(first, "the first sentence"), check_text(second, "the second sentence")
        return self.origin.explain(*sentences)._repr_html_()

    @cached_property
    def examples(self) -> list[tuple[str, str]]:
        """Pairs of background sentences that are similar by some signal but not copies, each sentence once."""
        remember_background(self.origin)
        sentences = [text for text in self.origin.background if _fits(text)]
        pairs = np.stack(np.triu_indices(len(sentences), 1), axis=1)
        signal = next((found for name, found in self.origin.signals.items() if name != "contexts"), None)
        if signal is None:
            scores, _ = self.origin.label(sentences, pairs, "group")
        else:
            scores = signal.similarity(*([sentences[place] for place in side] for side in pairs.T))
        return _examples(sentences, pairs[np.argsort(-np.where(scores < EXAMPLE_SIMILARITY, scores, -1))])


@dataclass(frozen=True)
class Place:
    """Where a sentence stands first."""

    doc_id: str
    before: str
    after: str


class Documents:
    """The sentences of a folder of chunks, to search in and to find duplicates among.

    Args:
        chunks (`str`): Folder made by `ctxsim chunk`.
        index (`SearchIndex`): Its sentences, each once, in the order of the chunks.
        surrogate (`str`): The folder of the surrogate.
    """

    def __init__(self, chunks: str, index: SearchIndex, surrogate: str) -> None:
        self.chunks, self.index = read_chunks(chunks), index
        self.thresholds = Thresholds.load(surrogate)

    @cached_property
    def _first_chunks(self) -> np.ndarray:
        """The row of the chunk in which each sentence stands first."""
        seen: set[int] = set()
        rows = []
        for row, sentences in enumerate(self.chunks["sentences"]):
            for sentence in sentences:
                digest = xxhash.xxh3_64_intdigest(sentence.encode())
                if digest not in seen:
                    seen.add(digest)
                    rows.append(row)
        return np.array(rows)

    def _chunk(self, number: int) -> dict[str, Any]:
        """Return the chunk in which a sentence of the index stands first."""
        rows = self._first_chunks
        chunk: dict[str, Any] = self.chunks[int(rows[number])] if number < len(rows) else {}
        if self.index.sentence(number) not in chunk.get("sentences", ()):
            raise UserError(f"{str(self.index.folder)!r} holds other sentences than the chunks; remove it")
        return chunk

    def place(self, number: int) -> Place:
        """Return where a sentence of the index stands first."""
        chunk = self._chunk(number)
        sentences, sentence = chunk["sentences"], self.index.sentence(number)
        position = sentences.index(sentence)
        before, after = sentences[max(0, position - 1) : position], sentences[position + 1 : position + 2]
        return Place(chunk["doc_id"], *(" ".join(side) for side in (before, after)))

    @cached_property
    def examples(self) -> list[tuple[str, str]]:
        """Pairs of similar sentences that are no copies, each sentence once."""
        places = np.unique(np.linspace(0, len(self.index) - 1, EXAMPLE_SENTENCES).astype(int))
        places = np.array([place for place in places.tolist() if _fits(self.index.sentence(place))], dtype=int)
        mined = mine_pairs(self.index.vectors()[places], -1, EXAMPLE_SENTENCES)
        sentences = [self.index.sentence(place) for place in places.tolist()]
        return _examples(sentences, mined.places[mined.similarities < EXAMPLE_SIMILARITY])

    def search(self, query: str, top_k: int = 10) -> str:
        """Return the best sentences for a query, by similarity and by words, with what stands around them."""
        query = check_text(query, "what to look for")
        (hits,) = self.index.search([query], CANDIDATES)
        best = np.argsort(-_ranks(query, [hit.sentence for hit in hits]), kind="stable")[:top_k]
        return fragment("".join(self._hit(hits[place], _words_to_mark(query)) for place in best.tolist()))

    def _hit(self, hit: Hit, asked: set[str]) -> str:
        place = self.place(hit.place)
        meaning = f", {self.thresholds.describe(hit.similarity)}" if self.thresholds else ""
        before, after = (f'<span class="quiet">{escape(text)}</span>' for text in (place.before, place.after))
        return (
            f'<div class="card">{before} <b>{mark_words(hit.sentence, asked)}</b> {after}'
            f'<div class="quiet">{hit.similarity:.3f}{meaning}; {escape(place.doc_id)}</div></div>'
        )

    @cached_property
    def duplicates(self) -> Duplicates:
        """The most similar pairs of sentences, from the vectors of the index."""
        vectors, number = self.index.vectors(), len(self.index)
        percentile = rare_percentile(number, 0.1)
        threshold = Threshold(UnrelatedPairs.sample(vectors).threshold(percentile), percentile)
        mined = mine_pairs(vectors, threshold.similarity, MAX_PAIRS)
        pairs = [
            DuplicatePair(
                self.index.sentence(first),
                self.index.sentence(second),
                score,
                self._chunk(first)["doc_id"],
                self._chunk(second)["doc_id"],
            )
            for (first, second), score in zip(mined.places.tolist(), mined.similarities.tolist(), strict=True)
        ]
        return Duplicates(pairs, threshold, number, None)

    def duplicates_html(self) -> str:
        """Return the pairs as a table."""
        return self.duplicates.html()


def _fits(sentence: str) -> bool:
    low, high = EXAMPLE_WORDS
    return low <= len(words(sentence)) <= high


def _examples(sentences: list[str], pairs: np.ndarray) -> list[tuple[str, str]]:
    """Return the first pairs, each sentence once."""
    chosen: list[tuple[str, str]] = []
    used: set[int] = set()
    for first, second in pairs.tolist():
        if len(chosen) < EXAMPLES and not {first, second} & used:
            chosen.append((sentences[first], sentences[second]))
            used |= {first, second}
    return chosen


def _ranks(query: str, similar: list[str]) -> np.ndarray:
    """Fuse the ranks of sentences, the most similar first, with those by the words of the query."""
    asked, held = bm25_vectors([query], similar)
    scores = (asked @ held.T).toarray()
    by_words = reciprocal_ranks(np.where(scores > 0, scores, -np.inf))
    return np.asarray((by_words + reciprocal_ranks(-np.arange(len(similar))[None]))[0])


def _words_to_mark(query: str) -> set[str]:
    """Return the words of a query, without the short ones, which say little, where it has longer ones."""
    asked = set(words(query))
    return {word for word in asked if len(word) >= MARKED_LETTERS} or asked


def open_documents(chunks: str, surrogate: str, index: Path) -> Documents:
    """Open documents for search; encode their sentences first if that was not done yet."""
    from ctxsim_hf.encoder.sentence_encoder import SentenceEncoder
    from ctxsim_hf.surrogate.search_command import ChunkSentences

    found = SearchIndex(index, SentenceEncoder.from_pretrained(surrogate))
    if not len(found):
        found.add(ChunkSentences(chunks))
    return Documents(chunks, found, surrogate)
