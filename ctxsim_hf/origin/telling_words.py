"""Contexts -> the words in them that matter: without which a sentence fits a context less well.

Each word of a context is left out in turn, and the context is scored again. As always a fit counts in standard
deviations above background sentences in the same context, so that a word which makes any sentence likelier does not
show. That is a score for every word, so it is only done with models that are fast.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ctxsim_hf.origin.comparison import comparable
from ctxsim_hf.origin.fit_score import ContextScorer
from ctxsim_hf.text.chunks import Context
from ctxsim_hf.text.words import word_spans, words

BACKGROUND = 32  # sentences
MAX_WORDS = 60  # different words of a context that are tried
SHOWN = 4  # words of a context
MIN_DROP = 0.15  # standard deviations
FREQUENT = 0.05  # share of the background sentences


def telling_words(
    sentences: Sequence[str],
    contexts: Sequence[Context],
    weights: Sequence[float],
    scorer: ContextScorer,
    background: Sequence[str],
) -> list[tuple[str, ...]]:
    """Return for each context the words that matter most, in lower case.

    Args:
        sentences (`Sequence[str]`): The sentences that are compared.
        contexts (`Sequence[Context]`): The contexts.
        weights (`Sequence[float]`): How much the fit of each sentence counts.
        scorer (`ContextScorer`): Scores sentences in contexts.
        background (`Sequence[str]`): Sentences to compare a fit with.
    """
    vocabularies = [_vocabulary(context) for context in contexts]
    changed = [
        version
        for context, vocabulary in zip(contexts, vocabularies, strict=True)
        for version in (context, *(_without(context, word) for word in vocabulary))
    ]
    if not changed:
        return []
    scores = scorer.score([*sentences, *background[:BACKGROUND]], changed)
    fits = comparable("zscore", scores[: len(sentences)], scores[len(sentences) :])  # (sentences, versions)
    found, start = [], 0
    for vocabulary in vocabularies:
        whole, without = fits[:, start], fits[:, start + 1 : start + 1 + len(vocabulary)]
        drops = np.asarray(weights) @ (whole[:, None] - without)
        best = [place for place in np.argsort(-drops, kind="stable")[:SHOWN] if drops[place] >= MIN_DROP]
        found.append(tuple(vocabulary[place] for place in best))
        start += 1 + len(vocabulary)
    return found


def _vocabulary(context: Context) -> list[str]:
    return list(dict.fromkeys(words(" ".join((*context.left, *context.right)))))[:MAX_WORDS]


def _without(context: Context, word: str) -> Context:
    """Leave a word out of both sides."""
    left, right = (tuple(_cut(text, word) for text in side) for side in (context.left, context.right))
    return replace(context, left=left, right=right)


def _cut(text: str, word: str) -> str:
    parts, last = [], 0
    for start, end in word_spans(text, (word,)):
        parts.append(text[last:start])
        last = end
    return " ".join("".join([*parts, text[last:]]).split())


def shared_words(
    sentences: Sequence[str], contexts: Sequence[Context], background: Sequence[str]
) -> list[tuple[str, ...]]:
    """Return for each context the words it shares with a sentence, except those that are in many background sentences:
    what can be marked without a score."""
    counts = Counter(word for sentence in background for word in set(words(sentence)))
    frequent = {word for word, count in counts.items() if count > FREQUENT * len(background)}
    held = set().union(*(words(sentence) for sentence in sentences)) - frequent
    texts = [" ".join((*context.left, *context.right)) for context in contexts]
    return [tuple(dict.fromkeys(word for word in words(text) if word in held)) for text in texts]
