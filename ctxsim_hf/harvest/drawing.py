"""Draw groups of sentences from an index, and pairs within each group.

A sentence's split is fixed by the hash of its normalised text before anything is drawn, and a group is drawn within a
split. No sentence is in two groups, so no pair occurs twice. A group holds two families and some unrelated sentences:

| two sentences of a group | how they were drawn |
|---|---|
| both in the first family, a seed and sentences near it by TF-IDF | `near_R`: both among the R nearest to the seed |
| both in the second family, consecutive sentences of one document | `adjacent` or `same_document` |
| in different families, or one of them unrelated | `random` |
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ctxsim_hf.origin.context_index import ContextIndex
from ctxsim_hf.text.tokenized import TokenizedSentences
from ctxsim_hf.text.word_ngrams import mix as mix_keys

PAIR_SPLITS = ("train", "validation", "test")
NEAR_CHUNKS = 500  # that TF-IDF finds for a seed; the sentences in them are then ranked one by one
RANK_BOUNDS = 4 ** np.arange(16)  # the R of near_R
TOKENS_PER_BLOCK = 1 << 20
_NOT_FREE = -1


@dataclass(frozen=True)
class Mix:
    """How many sentences of each sort make up a group, and which of its pairs count."""

    near: int  # sentences in the first family
    document: int  # sentences in the second family
    unrelated: int  # sentences that belong to neither
    farthest: int  # rank, among the sentences nearest to the seed, of the last that joins its family
    random_share: float  # largest share of random pairs in a group; 1 means that every pair counts


@dataclass(frozen=True)
class Group:
    """Sentences that are paired with each other."""

    sentences: np.ndarray  # (members,): numbers in the index
    families: np.ndarray  # (members,): equal within a family
    ranks: np.ndarray  # (members,): how near to the seed of the first family, 0 for itself; -1 for other families


class Pairs(NamedTuple):
    """The pairs of a group, in the order of their hashes."""

    members: np.ndarray  # (pairs, 2): places in the group
    hashes: np.ndarray  # (pairs,)
    drawn: np.ndarray  # (pairs,): how each was drawn, such as near_16 or random

    def first(self, number: int) -> "Pairs":
        """Return the first `number` pairs."""
        return Pairs(*(column[:number] for column in self))


def split_of(keys: np.ndarray) -> np.ndarray:
    """Return the place in `PAIR_SPLITS` of each sentence hash: 98 % train, 1 % validation, 1 % test."""
    return np.clip(2 - (keys % np.uint64(100)).astype(np.int8), 0, 2)


class Drawing:
    """Draw groups of sentences, each sentence at most once. The same seed draws the same groups.

    Args:
        index (`ContextIndex`): The index whose sentences are drawn.
        mix (`Mix`): What a group is made of.
        tokens (`tuple[int, int]`): Smallest and largest number of tokens of a sentence that may be drawn.
        seed (`int`): Random seed of the order in which sentences are drawn.
        split_of: Maps hashes of sentences to places in `PAIR_SPLITS`.
    """

    def __init__(
        self,
        index: ContextIndex,
        mix: Mix,
        tokens: tuple[int, int],
        seed: int,
        split_of: Callable[[np.ndarray], np.ndarray] = split_of,
    ) -> None:
        self.index, self.mix, self.seed = index, mix, seed
        lengths = index.chunks.lengths
        ordinary = np.flatnonzero((lengths >= tokens[0]) & (lengths <= tokens[1]))
        keys, first = np.unique(index.sentence_keys[ordinary], return_index=True)  # a repeated text counts once
        self._free = np.full(len(lengths), _NOT_FREE, np.int8)  # the split of a sentence that can still be drawn
        self._free[ordinary[first]] = split_of(keys)
        self._weights = _token_weights(index.chunks)

    def num_sentences(self, split: str) -> int:
        """Return how many sentences of a split have not been drawn yet."""
        return int((self._free == PAIR_SPLITS.index(split)).sum())

    def groups(self, split: str) -> Iterator[Group]:
        """Yield groups of a split until its sentences are used up."""
        code = PAIR_SPLITS.index(split)
        order = np.random.default_rng((self.seed, code)).permutation(np.flatnonzero(self._free == code))
        seeds = (int(sentence) for sentence in order if self._free[sentence] == code)
        for seed in seeds:
            near, ranks = self._near(seed)
            families = [near]
            if (beginning := next(seeds, None)) is not None:
                families.append(self._of_document(beginning))
            for _ in range(self.mix.unrelated):
                if (other := next(seeds, None)) is not None:
                    families.append(self._take(np.array([other])))
            sizes = [len(family) for family in families]
            yield Group(
                np.concatenate(families),
                np.repeat(np.arange(len(families)), sizes),
                np.concatenate([ranks, np.full(sum(sizes) - len(ranks), -1)]),
            )

    def _take(self, sentences: np.ndarray) -> np.ndarray:
        self._free[sentences] = _NOT_FREE
        return sentences

    def _near(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Take a seed and sentences of other documents at several ranks of nearness; return them and the ranks."""
        store, code = self.index.chunks, self._free[seed]
        ((chunks, _),) = self.index.tfidf.search(self.index.texts([seed]), NEAR_CHUNKS)
        others = _ranges(store.chunk_starts, np.sort(chunks))
        first, end = self._document(seed)
        others = others[(self._free[others] == code) & ((others < first) | (others >= end))]
        order = np.argsort(-_likeness(store, self._weights, seed, others), kind="stable")
        ranks = spread_ranks(self.mix.near - 1, min(self.mix.farthest, len(others)))
        return self._take(np.append(seed, others[order[ranks - 1]])), np.append(0, ranks)

    def _of_document(self, seed: int) -> np.ndarray:
        """Take a sentence and the free ones around it in its document."""
        first, end = self._document(seed)
        free = first + np.flatnonzero(self._free[first:end] == self._free[seed])
        place = int(np.searchsorted(free, seed))
        start = max(0, min(place - self.mix.document // 2, len(free) - self.mix.document))
        return self._take(free[start : start + self.mix.document])

    def _document(self, sentence: int) -> np.ndarray:
        """Return the first sentence of its document, and the first one after that document."""
        starts = self.index.chunks.document_starts
        after = np.searchsorted(starts, sentence, side="right")
        return starts[after - 1 : after + 1]

    def pairs(self, group: Group) -> Pairs:
        """Return the pairs of a group that count.

        The hash of a pair decides which sentence comes first, where the pair stands, and whether a random pair counts.
        """
        first, second = np.triu_indices(len(group.sentences), 1)
        keys = self.index.sentence_keys[group.sentences]
        hashes = mix_keys(np.minimum(keys[first], keys[second]), np.maximum(keys[first], keys[second]))
        swapped = (hashes & np.uint64(1)).astype(bool) != (keys[first] > keys[second])
        first, second = np.where(swapped, second, first), np.where(swapped, first, second)
        drawn = self._how_drawn(group, first, second)
        order = np.argsort(hashes, kind="stable")
        if self.mix.random_share < 1:
            is_random = drawn[order] == "random"
            share = self.mix.random_share
            wanted = round((~is_random).sum() * share / (1 - share))
            order = order[~is_random | (np.cumsum(is_random) <= wanted)]
        return Pairs(np.stack([first, second], axis=1)[order], hashes[order], drawn[order])

    def _how_drawn(self, group: Group, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        sentences, store = group.sentences, self.index.chunks
        # Neighbouring chunks may lack a long sentence between them; within a chunk nothing is missing.
        next_to = np.abs(sentences[first] - sentences[second]) == 1
        next_to &= store.chunks_of(sentences[first]) == store.chunks_of(sentences[second])
        ranks = np.maximum(group.ranks[first], group.ranks[second])
        near = np.char.add("near_", RANK_BOUNDS[np.searchsorted(RANK_BOUNDS, ranks)].astype(str))
        within = np.where(ranks >= 0, near, np.where(next_to, "adjacent", "same_document"))
        return np.where(group.families[first] == group.families[second], within, "random")


def spread_ranks(number: int, farthest: int) -> np.ndarray:
    """Return different ranks from 1 to `farthest`, about evenly spaced on a logarithmic scale."""
    number = min(number, farthest)
    steps = np.arange(number)
    return np.maximum(steps + 1, np.rint(farthest ** (steps / max(1, number - 1)))).astype(np.int64)


def _ranges(starts: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return all places from starts[n] up to starts[n + 1], for each number n."""
    firsts, lengths = starts[numbers], starts[numbers + 1] - starts[numbers]
    return np.repeat(firsts - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())


def _token_weights(store: TokenizedSentences) -> np.ndarray:
    """Return the squared log inverse frequency of every token: what it adds to a cosine when both sides hold it."""
    counts = np.zeros(1, np.int64)
    for start in range(0, len(store.tokens), TOKENS_PER_BLOCK):
        found = np.bincount(store.tokens[start : start + TOKENS_PER_BLOCK], minlength=len(counts))
        found[: len(counts)] += counts
        counts = found
    weights: np.ndarray = np.log((1 + len(store.tokens)) / (1 + counts)) ** 2
    return weights


def _likeness(store: TokenizedSentences, weights: np.ndarray, sentence: int, others: np.ndarray) -> np.ndarray:
    """Return the TF-IDF cosine of a sentence with others, up to a factor that is the same for all of them."""
    held = np.zeros_like(weights)
    held[store.tokens[store.sentence_starts[sentence] : store.sentence_starts[sentence + 1]]] = 1
    picked = store.pick(others)
    found = weights[picked.tokens]
    starts = picked.sentence_starts[:-1]
    likeness: np.ndarray = np.add.reduceat(found * held[picked.tokens], starts) / np.sqrt(
        np.add.reduceat(found, starts)
    )
    return likeness
