"""The counts of a stage -> lines of text for the screen."""

import json
from collections.abc import Mapping
from typing import Any

# Recorded name -> what it is, and what chance or the simplest model would reach; other names speak for themselves.
LABELS = {
    "accuracy_corpus": "accuracy against sentences of other documents (chance 0.5)",
    "accuracy_same_document": "accuracy against sentences of the same document (chance 0.5)",
    "l2": "mean squared error",
    "l2_of_the_mean": "mean squared error of always predicting the mean",
    "pearson": "Pearson correlation with the labels (chance 0)",
    "pearson_deviation": "standard deviation of Pearson over the folds",
    "spearman": "Spearman correlation with the labels (chance 0)",
    "spearman_deviation": "standard deviation of Spearman over the folds",
    "spearman_tfidf": "Spearman correlation of TF-IDF with the labels",
    **{
        f"{target}_{figure}{when}": label.format(target) + said
        for target in ("sentence", "left", "right")
        for figure, label in {
            "gain": "{}: gain in log-probability per token from the true context (chance 0)",
            "perplexity": "{}: perplexity per token",
            "unigram_perplexity": "{}: perplexity of token frequencies alone",
        }.items()
        for when, said in {"": "", "_before": ", before training"}.items()
    },
}


def format_counts(counts: Mapping[str, Any]) -> str:
    """Return one line for each count, in columns. Nested counts share a line, and an interval follows its figure."""
    ends = {f"{name}_{end}" for name in counts for end in ("low", "high") if f"{name}_{end}" in counts}
    shown = {name: value for name, value in counts.items() if name not in ends}
    width = max((len(_label(name)) for name in shown), default=0)
    return "\n".join(
        f"{_label(name):<{width}}  {_value(value)}{_interval(name, counts)}" for name, value in shown.items()
    )


def _label(name: str) -> str:
    return LABELS.get(name, name.replace("_", " "))


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
