"""The counts of a stage -> lines of text for the screen."""

import json
from collections.abc import Mapping
from typing import Any

# Recorded name -> what it is; other names speak for themselves.
LABELS = {
    "accuracy": "accuracy: how often the positive is nearer than the negative",
    "accuracy_corpus": "accuracy against sentences of other documents",
    "accuracy_same_document": "accuracy against sentences of the same document",
    "dense_size": "dimensions of the vectors, without the sparse ones of words",
    "drawn": "pairs by how they were drawn (near R: both among the R most similar sentences to a third)",
    "gain": "gain of these weights over the start, on validation (0: no better)",
    "kept_step": "step that the weights are of (0: the start)",
    "l2": "mean squared error",
    "l2_of_the_mean": "mean squared error of always predicting the mean",
    "least_cosine": "lowest cosine of a vector and the model's own",
    "mean_score": "mean score, by how the pairs were drawn",
    "mean_spread": "mean spread of the scores over contexts, by how the pairs were drawn",
    "pearson": "Pearson correlation with the labels",
    "shares": "share of each signal in the similarity",
    "spearman": "Spearman correlation with the labels",
    "spearman_tfidf": "Spearman correlation of TF-IDF with the labels",
    "tokens": "tokens read",
    "train_loss": "training loss at the end",
    "vocabulary": "tokens in the vocabulary",
    **{
        f"{target}_{figure}": f"{target}: {label}"
        for target in ("sentence", "left", "right")
        for figure, label in {
            "gain": "gain in log-probability per token from the true context",
            "perplexity": "perplexity per token",
            "unigram_perplexity": "perplexity of token frequencies alone",
        }.items()
    },
}
ENDINGS = {"_before": "before training", "_start": "of the start", "_deviation": "standard deviation over the folds"}
# Recorded name -> what a model would reach that learned nothing.
CHANCE = {
    **dict.fromkeys(("accuracy", "accuracy_corpus", "accuracy_same_document"), 0.5),
    **dict.fromkeys(("sentence_gain", "left_gain", "right_gain", "pearson", "spearman"), 0.0),
}


def describe_result(counts: Mapping[str, Any], folder: str) -> str:
    """Return what a stage prints at its end: its counts, which of them are no better than chance, and its folder."""
    at_chance = [name for name, chance in CHANCE.items() if name in counts and not _least(name, counts) > chance]
    said = [f"No better than chance: {'; '.join(map(_label, at_chance))}."] if at_chance else []
    return "\n".join([format_counts(counts), *said, f"{folder} is finished"])


def format_counts(counts: Mapping[str, Any]) -> str:
    """Return one line for each count, in columns. Nested counts share a line, and an interval follows its figure."""
    ends = {f"{name}_{end}" for name in counts for end in ("low", "high") if f"{name}_{end}" in counts}
    shown = {name: value for name, value in counts.items() if name not in ends}
    width = max((len(_label(name)) for name in shown), default=0)
    return "\n".join(
        f"{_label(name):<{width}}  {_value(value)}{_interval(name, counts)}" for name, value in shown.items()
    )


def _label(name: str) -> str:
    for ending, said in ENDINGS.items():
        if name.endswith(ending):
            return f"{_label(name.removesuffix(ending))}, {said}"
    label = LABELS.get(name, name.replace("_", " "))
    return f"{label} (chance {CHANCE[name]:g})" if name in CHANCE else label


def _least(name: str, counts: Mapping[str, Any]) -> float:
    """Return the lower end of a figure's interval, or the figure itself if it has none."""
    return float(counts.get(f"{name}_low", counts[name]))


def _interval(name: str, counts: Mapping[str, Any]) -> str:
    low, high = counts.get(f"{name}_low"), counts.get(f"{name}_high")
    return "" if low is None or high is None else f" ({_value(low)} to {_value(high)})"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{_value(number)} {name.replace('_', ' ')}" for name, number in value.items()) or "0"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
    return json.dumps(value, ensure_ascii=False).strip('"')
