"""A generator -> how much it uses its context: scores of held-out targets given their own and an unrelated source.

The gain is the mean log-probability given the own source minus that given the source of another document, per target
token. Its interval comes from a bootstrap over documents, since the contexts of one document are not independent. The
perplexity is reported with that of a unigram model, which knows only the frequency of each token.
"""

from collections.abc import Callable, Sequence

import numpy as np

from ctxsim_hf.context_models.context_data import ContextData
from ctxsim_hf.runtime.estimates import bootstrap
from ctxsim_hf.text.tokenized import TokenizedChunks

# (targets, sources, direction) -> log p(target | source) of each row; targets and sources are contexts
Score = Callable[[np.ndarray, np.ndarray, str], np.ndarray]


def evaluate_context_use(
    score: Score, directions: Sequence[str], data: ContextData, width: int, max_sentence_tokens: int, limit: int
) -> dict[str, float]:
    """Return gain, its interval, perplexity and unigram perplexity in each direction, on at most `limit` contexts."""
    contexts = data.evaluation_contexts()[:limit]
    documents = data.held_out.documents_of(contexts)
    others = contexts[unrelated_contexts(documents)]
    log_frequencies = unigram_log_frequencies(data)
    figures: dict[str, float] = {}
    for direction in directions:
        targets = target_sentences(data.held_out, contexts, direction, width)
        tokens, unigram = _sum_tokens(data, targets, log_frequencies, max_sentence_tokens)
        own, other = score(contexts, contexts, direction), score(contexts, others, direction)
        use = mean_with_interval("gain", own - other, tokens, documents)
        use["perplexity"] = float(np.exp(-own.sum() / tokens.sum()))
        use["unigram_perplexity"] = float(np.exp(-unigram.sum() / tokens.sum()))
        figures |= {f"{direction}_{name}": value for name, value in use.items()}
    return figures


def unrelated_contexts(documents: np.ndarray) -> np.ndarray:
    """Return for each context the position of one from another document: half the list further on, or the next."""
    places = (np.arange(len(documents)) + len(documents) // 2) % len(documents)
    for _ in range(len(documents)):
        same = documents[places] == documents
        if not same.any():
            break
        places[same] = (places[same] + 1) % len(documents)
    return places


def mean_with_interval(name: str, sums: np.ndarray, counts: np.ndarray, documents: np.ndarray) -> dict[str, float]:
    """Return the mean of sums over as many as `counts`, such as tokens, with its 95 % bootstrap interval over
    documents."""
    _, document = np.unique(documents, return_inverse=True)
    sums, counts = (np.bincount(document, weights=values) for values in (sums, counts))
    mean = bootstrap(lambda drawn: sums[drawn].sum(1) / counts[drawn].sum(1), len(sums))
    return {name: mean.value, f"{name}_low": mean.low, f"{name}_high": mean.high}


def target_sentences(chunks: TokenizedChunks, contexts: np.ndarray, direction: str, width: int) -> np.ndarray:
    """Return the sentences of each context's target, (contexts, 1 or width), -1 for none."""
    left, right = chunks.neighbours(contexts, width)
    return {"left": left, "sentence": contexts[:, None], "right": right}[direction]


def unigram_counts(data: ContextData) -> np.ndarray:
    """Return the frequency of each id in the training sentences, counting the end token of every sentence."""
    counts = np.bincount(data.train.tokens, minlength=len(data.tokenizer))
    counts[data.special.eos] += len(data.train.lengths)
    return counts


def unigram_log_frequencies(data: ContextData) -> np.ndarray:
    """Return the log-probabilities of a unigram model."""
    smoothed = unigram_counts(data).astype(np.float64) + 1  # so that unseen tokens are possible
    return np.log(smoothed / smoothed.sum())


def _sum_tokens(
    data: ContextData, sentences: np.ndarray, values: np.ndarray, max_sentence_tokens: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each row of sentences its number of tokens, with end tokens, and the sum of the tokens' values."""
    ids = data.held_out.padded(sentences.ravel(), data.special.pad, max_sentence_tokens, data.special.eos)
    real = (ids != data.special.pad) & (sentences.ravel() >= 0)[:, None]
    tokens, sums = real.sum(1), (values[ids] * real).sum(1)
    return tokens.reshape(sentences.shape).sum(1), sums.reshape(sentences.shape).sum(1)
