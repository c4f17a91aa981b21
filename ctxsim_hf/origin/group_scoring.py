"""Score the pairs of a group of sentences by contexts, in one of two modes.

`pair`, the paper's: the contexts of a pair are those found for either sentence, C_s1 + C_s2 (Eq. 4). `group`: all
sentences of the group are scored in one pool of contexts, and every pair is compared in that pool. Either way S of a
sentence in a context is computed once, in one matrix for the whole group.
"""

from collections.abc import Callable, Sequence

import numpy as np

from ctxsim_hf.origin.comparison import comparable, cosines_and_spreads, whiten
from ctxsim_hf.origin.context_pool import choose_pool
from ctxsim_hf.origin.contexts_signal import ContextsSignal

Labels = tuple[np.ndarray, np.ndarray]  # scores and spreads, (pairs,)


def score_pairs(signal: ContextsSignal, sentences: Sequence[str], pairs: np.ndarray) -> Labels:
    """Score pairs, given by the places of their sentences, in mode `pair`: the same as `signal.compare`."""
    sets = list(signal.sets(sentences))
    contexts, places = np.unique(np.concatenate(sets), return_inverse=True)
    columns = np.split(places, np.cumsum([len(found) for found in sets])[:-1])  # of each sentence's set
    scorer, settings = signal.scorer, signal.settings
    prepared = scorer.prepare_contexts(signal.index.contexts(contexts))
    scores = scorer.weights.combine(scorer.terms(scorer.prepare_sentences(sentences), prepared))
    background = signal.background_scores(prepared)
    # Only whitening depends on which contexts are combined; the rest is done once for the group.
    whitened = settings.compare_by == "whitened"
    first_step = "zscore" if whitened else settings.compare_by
    vectors = comparable(first_step, scores, background)
    if whitened:
        background = comparable(first_step, background, background)
    labels = []
    for pair in pairs:
        both = np.concatenate([columns[member] for member in pair])
        two = vectors[np.ix_(pair, both)]
        if whitened:
            two = whiten(two, background[:, both], settings.ridge)
        labels.append(cosines_and_spreads(two, np.array([[0, 1]]), settings.seed))
    found, spreads = (np.concatenate(column) for column in zip(*labels, strict=True))
    return found, spreads


def score_group(signal: ContextsSignal, sentences: Sequence[str], pairs: np.ndarray) -> Labels:
    """Score pairs in mode `group`, in a pool of as many contexts as a pair has in mode `pair`."""
    settings = signal.settings
    contexts, scores = choose_pool(signal.sets, sentences, 2 * settings.num_contexts)
    background = signal.background_scores(signal.scorer.prepare_contexts(signal.index.contexts(contexts)))
    vectors = comparable(settings.compare_by, scores, background, settings.ridge)
    return cosines_and_spreads(vectors, pairs, settings.seed)


GROUP_SCORERS: dict[str, Callable[[ContextsSignal, Sequence[str], np.ndarray], Labels]] = {
    "pair": score_pairs,
    "group": score_group,
}
