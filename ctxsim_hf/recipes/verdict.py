"""The figures of an adapted surrogate -> a plain verdict, and what three searches find."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ctxsim_hf.evaluation.label_free import held_out_documents
from ctxsim_hf.evaluation.yardstick import YARDSTICK
from ctxsim_hf.text.chunks import read_chunks
from ctxsim_hf.text.words import words

if TYPE_CHECKING:
    from ctxsim_hf.encoder.sentence_encoder import SentenceEncoder

# What compares words without any learning, as systems of `ctxsim evaluate`; `words` is the signal of that name alone.
WITHOUT_LEARNING = {"words": "words=letters", "tfidf": "tfidf", "bm25": "bm25"}
CHANCE = 0.5
NUM_SEARCHES, NUM_HITS = 3, 2
SEARCHED = 5000  # sentences
QUERY_WORDS = (8, 20)
MIN_WORDS = 4  # of what is found; fragments are near to anything
SEED = 0


def loses(results: Mapping[str, Any], other: str) -> bool:
    """Return whether the first system of results.json was compared with another and is worse by the yardstick."""
    ahead = _leads(results)
    return other in ahead and bool(ahead[other]["high"] < 0)


def _leads(results: Mapping[str, Any]) -> dict[str, Mapping[str, float]]:
    return {row["other"]: row[YARDSTICK] for row in results["differences"]}


def verdict(results: Mapping[str, Any], surrogate: str, start: str | None, is_start: bool = False) -> str:
    """Return in words whether the surrogate is worth using, by the yardstick alone.

    Args:
        results: The content of results.json, whose first system is the surrogate.
        surrogate (`str`): Its name in there.
        start (`str`, *optional*): Name of the encoder it started from. None if it started from vectors of words.
        is_start (`bool`): Whether the surrogate is what it started from, since nothing that was learned was better.
    """
    figures = {row["system"]: row["auc"] for row in results["results"] if row["task"] == YARDSTICK}
    ahead = _leads(results)
    if figures[surrogate]["low"] <= CHANCE:
        return (
            "Do not use it: on held-out documents it tells related sentences from unrelated ones no better than "
            "chance. Perhaps the order of the sentences says nothing here, or there are too few documents."
        )
    if is_start and start is not None:
        return "Nothing that was learned is better than what you started from, so the start is what you have here."
    compared = [start] if start is not None else list(WITHOUT_LEARNING)
    lines = ["Training did not make it better, so it is what it started from."] if is_start else []
    lines += [_comparison(surrogate, name, ahead[name]) for name in compared]
    worse = [name for name in compared if ahead[name]["high"] < 0]
    better = [name for name in compared if ahead[name]["low"] > 0]
    if worse:
        advice = f"Do not use it: {_listed(worse)} did better on your own held-out documents."
    elif len(better) == len(compared):
        advice = (
            "Use it: it is better than what you started from."
            if start
            else "Use it: it is better than matching words."
        )
    else:
        equal = [name for name in compared if name not in better]
        advice = f"It is no better than {_listed(equal)}; {'any' if equal[1:] else 'either'} will do."
    return "\n".join([*lines, advice])


def _listed(names: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def _comparison(name: str, other: str, ahead: Mapping[str, float]) -> str:
    low, value, high = (100 * ahead[part] for part in ("low", "value", "high"))
    return f"{name} against {other}: {value:+.1f} points of the yardstick ({low:+.1f} to {high:+.1f})."


def searches(encoder: "SentenceEncoder", chunks: str) -> str:
    """Search the corpus for held-out sentences, and return what was found."""
    queries = _some([s for document in held_out_documents(chunks) for s in document], NUM_SEARCHES, QUERY_WORDS)
    train = read_chunks(chunks, "train")
    places = np.unique(np.linspace(0, len(train) - 1, SEARCHED).astype(int))
    distinct = list(dict.fromkeys(sentence for row in train.select(places)["sentences"] for sentence in row))
    whole = [sentence for sentence in distinct if len(words(sentence)) >= MIN_WORDS] or distinct
    sentences = whole[:: math.ceil(len(whole) / SEARCHED)]  # of all documents, not of the first ones
    asked, found = (np.asarray(encoder.encode(texts, normalize_embeddings=True)) for texts in (queries, sentences))
    similarity = asked @ found.T
    lines = [f"Searches among {len(sentences):,} of your sentences, by held-out ones:"]
    for query, row in zip(queries, similarity, strict=True):
        lines += [f"? {query}", *(f"    {sentences[place]}" for place in np.argsort(-row, kind="stable")[:NUM_HITS])]
    return "\n".join(lines)


def _some(sentences: Sequence[str], number: int, length: tuple[int, int]) -> list[str]:
    fitting = [sentence for sentence in sentences if length[0] <= len(words(sentence)) <= length[1]] or list(sentences)
    order = np.random.default_rng(SEED).permutation(len(fitting))[:number]
    return [fitting[place] for place in order]
