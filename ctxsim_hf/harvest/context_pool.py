"""A group of sentences -> one pool of contexts for all of them: found and ranked for each sentence as its own context
set is, and then taken from the sentences in turn so that no two contexts of the pool resemble each other."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from ctxsim_hf.origin.context_index import ContextIndex, sentence_key
from ctxsim_hf.origin.context_set import jaccard, select
from ctxsim_hf.origin.similarity import OriginSimilarity
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.tokenized import tokenize_sentences


def choose_pool(origin: OriginSimilarity, sentences: Sequence[str], size: int) -> tuple[np.ndarray, np.ndarray]:
    """At most `size` contexts, none with one of the sentences on a side, and S of the sentences in them."""
    settings = origin.settings
    if settings.strategy != "two_step":
        raise UserError(
            f"groups choose their contexts by the strategy 'two_step', not {settings.strategy!r}; use the mode 'pair'"
        )
    number = settings.rerank_candidates * -(-size // len(sentences))
    candidates = list(_candidates(origin, sentences, number))
    contexts, places = np.unique(np.concatenate(candidates), return_inverse=True)
    scores = origin.scorer.score(sentences, origin.index.tokens(contexts))
    columns = np.split(places, np.cumsum([len(found) for found in candidates])[:-1])
    best_first = [own[np.argsort(-row[own], kind="stable")] for own, row in zip(columns, scores, strict=True)]
    order = _in_turn(best_first)
    store = origin.index.chunks
    likeness = jaccard(store.pick(contexts[order] - 1))
    chosen = order[select(store.chunks_of(contexts[order]), likeness, size, settings.max_jaccard)]
    return contexts[chosen], scores[:, chosen]


@torch.inference_mode()
def _candidates(origin: OriginSimilarity, sentences: Sequence[str], number: int) -> Iterator[np.ndarray]:
    """For each sentence the contexts that the discriminator ranks first among those TF-IDF finds."""
    index, discriminator = origin.index, origin.context_sets.discriminator
    parts = discriminator.prepare_sentences(tokenize_sentences(origin.scorer.tokenizer, sentences))
    keys = np.array([sentence_key(sentence) for sentence in sentences], dtype=np.uint64)
    found = index.tfidf.search(sentences, origin.settings.screen_chunks)
    for part, (chunks, _) in zip(parts, found, strict=True):
        contexts = _without(index, keys, index.screened_contexts(np.sort(chunks)))
        stored = torch.from_numpy(index.parts[index.rows(contexts)]).to(part.device).float()
        ranked = torch.argsort(discriminator.model.score_parts(stored, part[None]), descending=True, stable=True)
        yield contexts[ranked[:number].cpu().numpy()]


def _without(index: ContextIndex, keys: np.ndarray, contexts: np.ndarray) -> np.ndarray:
    sides = np.concatenate(index.chunks.neighbours(contexts, index.width), axis=1)
    held = np.isin(index.sentence_keys[sides], keys) & (sides >= 0)
    return contexts[~held.any(1)]


def _in_turn(lists: Sequence[np.ndarray]) -> np.ndarray:
    """The first of each list, then the second of each, ...; what comes again is left out."""
    turns = np.concatenate([np.arange(len(numbers)) for numbers in lists])
    numbers = np.concatenate(lists)[np.argsort(turns, kind="stable")]
    _, firsts = np.unique(numbers, return_index=True)
    return numbers[np.sort(firsts)]
