"""A group of sentences -> the scores and spreads of its pairs, in one of two modes.

`pair`, the paper's: the contexts of a pair are those found for either sentence, C_s1 + C_s2 (Eq. 4). `group`: all
sentences of the group are scored in one pool of contexts, and every pair is compared in that pool. Either way S of a
sentence in a context is computed once, in one matrix for the whole group.
"""

from collections.abc import Callable, Sequence

import numpy as np

from ctxsim_hf.harvest.context_pool import choose_pool
from ctxsim_hf.origin.comparison import comparable, cosines_and_spreads, whiten
from ctxsim_hf.origin.fit_score import Prepared
from ctxsim_hf.origin.similarity import OriginSimilarity

Labels = tuple[np.ndarray, np.ndarray]  # scores and spreads, (pairs,)
Scorer = Callable[[OriginSimilarity, Sequence[str], np.ndarray], Labels]  # sentences, and pairs of places among them


def score_pairs(origin: OriginSimilarity, sentences: Sequence[str], pairs: np.ndarray) -> Labels:
    """Mode `pair`: what `origin.compare` says of each pair."""
    sets = list(origin.context_sets(sentences))
    contexts, places = np.unique(np.concatenate(sets), return_inverse=True)
    columns = np.split(places, np.cumsum([len(found) for found in sets])[:-1])  # of each sentence's set
    scorer, settings = origin.scorer, origin.settings
    prepared = scorer.prepare_contexts(origin.index.tokens(contexts))
    scores = scorer.weights.combine(scorer.terms(scorer.prepare_sentences(sentences), prepared))
    background = _background_scores(origin, prepared)
    # Whitening alone depends on which contexts come together; all before it is done once for the group.
    whitened = settings.mode == "whitened"
    mode = "zscore" if whitened else settings.mode
    vectors = comparable(mode, scores, background)
    if whitened:
        background = comparable(mode, background, background)
    labels = []
    for pair in pairs:
        both = np.concatenate([columns[member] for member in pair])
        two = vectors[np.ix_(pair, both)]
        if whitened:
            two = whiten(two, background[:, both], settings.ridge)
        labels.append(cosines_and_spreads(two, np.array([[0, 1]]), settings.seed))
    scores, spreads = (np.concatenate(column) for column in zip(*labels, strict=True))
    return _with_lexical(origin, scores, spreads, sentences, pairs)


def score_group(origin: OriginSimilarity, sentences: Sequence[str], pairs: np.ndarray) -> Labels:
    """Mode `group`, in a pool of as many contexts as a pair has in the mode `pair`."""
    settings = origin.settings
    contexts, scores = choose_pool(origin, sentences, 2 * settings.num_contexts)
    background = _background_scores(origin, origin.scorer.prepare_contexts(origin.index.tokens(contexts)))
    vectors = comparable(settings.mode, scores, background, settings.ridge)
    scores, spreads = cosines_and_spreads(vectors, pairs, settings.seed)
    return _with_lexical(origin, scores, spreads, sentences, pairs)


SCORERS: dict[str, Scorer] = {"pair": score_pairs, "group": score_group}


def _background_scores(origin: OriginSimilarity, contexts: Prepared) -> np.ndarray:
    """S of the background sentences, (background, contexts); none where the comparison does not look at them."""
    if origin.settings.mode == "cosine":
        return np.zeros((0, 0))
    return origin.scorer.weights.combine(origin.scorer.terms(origin.background, contexts))


def _with_lexical(
    origin: OriginSimilarity, scores: np.ndarray, spreads: np.ndarray, sentences: Sequence[str], pairs: np.ndarray
) -> Labels:
    settings = origin.settings
    if not settings.lexical_weight:
        return scores, spreads
    first, second = ([sentences[member] for member in side] for side in pairs.T)
    lexical = origin.lexical.similarity(first, second)
    return settings.with_lexical(scores, lexical), settings.with_lexical_spread(spreads)
