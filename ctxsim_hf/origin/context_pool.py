"""Choose one pool of contexts for a group of sentences.

The best candidates of each sentence by fit score are taken from the sentences in turn, so that no two contexts of the
pool resemble each other.
"""

from collections.abc import Sequence

import numpy as np

from ctxsim_hf.origin.context_set import ContextSets, jaccard, select
from ctxsim_hf.runtime.errors import UserError


def choose_pool(sets: ContextSets, sentences: Sequence[str], size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return at most `size` contexts, none with one of the sentences on a side, and S of the sentences in them."""
    settings = sets.settings
    if settings.strategy != "two_step":
        raise UserError(
            f"groups choose their contexts by the strategy 'two_step', not {settings.strategy!r}; use the mode 'pair'"
        )
    number = settings.rerank_candidates * -(-size // len(sentences))
    candidates = [ranked[:number] for ranked in sets.candidates(sentences)]
    contexts, places = np.unique(np.concatenate(candidates), return_inverse=True)
    scores = sets.scorer.score(sentences, sets.index.contexts(contexts))
    columns = np.split(places, np.cumsum([len(found) for found in candidates])[:-1])
    best_first = [own[np.argsort(-row[own], kind="stable")] for own, row in zip(columns, scores, strict=True)]
    order = _in_turn(best_first)
    store = sets.index.chunks
    likeness = jaccard(store.pick(contexts[order] - 1))
    chosen = order[select(store.chunks_of(contexts[order]), likeness, size, settings.max_jaccard)]
    return contexts[chosen], scores[:, chosen]


def _in_turn(lists: Sequence[np.ndarray]) -> np.ndarray:
    """Return the first number of each list, then the second of each, and so on, without repetitions."""
    turns = np.concatenate([np.arange(len(numbers)) for numbers in lists])
    numbers = np.concatenate(lists)[np.argsort(turns, kind="stable")]
    _, firsts = np.unique(numbers, return_index=True)
    return numbers[np.sort(firsts)]
