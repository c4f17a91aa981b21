"""Provide Origin as an `evaluate` metric: the similarity of predictions and references by the contexts they fit."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import datasets
import evaluate

from ctxsim_hf import OriginSimilarity, ScoreWeights
from ctxsim_hf.context_models.terms import TERMS
from ctxsim_hf.origin.similarity import DEFAULT_ORIGIN

_DESCRIPTION = """
Scores pairs of sentences by an origin: a weighted mean of how well both fit contexts of a corpus, of the words that
a model expects near each, and of their own words. It needs no labels (`ctxsim adapt` or `ctxsim index` makes the
folder).
"""

_CITATION = """
@article{sun-etal-2022-sentence,
    title = "Sentence Similarity Based on Contexts",
    author = "Sun, Xiaofei and Meng, Yuxian and Ao, Xiang and Wu, Fei and Zhang, Tianwei and Li, Jiwei and Fan, Chun",
    journal = "Transactions of the Association for Computational Linguistics",
    volume = "10",
    year = "2022",
}
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (`list` of `str`): One side of the pairs.
    references (`list` of `str`): The other side, of the same length.
    origin (`str`): Folder made by `ctxsim index`, or its id on the Hub. Defaults to `ctxsim/origin-light`.
    weights (`list` of four `float`): Weights of the discriminative, sentence, left and right terms.
    signals (`dict` of `str` to `float`): Weights of the signals, e.g. `{"contexts": 1, "words": 0.5}`.
    settings: Any other setting of `ctxsim_hf.origin.settings.OriginSettings`, e.g. `compare_by` or `num_contexts`.
Returns:
    scores (`list` of `float`): The similarity of each pair, 1 for equal sentences.
    mean (`float`): Their mean; nan for no pairs.
    spread (`list` of `float`): Standard deviation of each score when other contexts are drawn.
    signature (`str`): Models, index, settings and versions. Compare only figures of equal signature.
Examples:

    >>> metric = evaluate.load("ctxsim/origin")
    >>> result = metric.compute(predictions=["A cat sat there."], references=["A cat sat there."])
    >>> round(result["scores"][0], 3)
    1.0
    >>> sorted(result)
    ['mean', 'scores', 'signature', 'spread']
"""


@lru_cache(maxsize=2)
def _open(origin: str, settings: tuple[tuple[str, Any], ...]) -> OriginSimilarity:
    """Open an origin once in a process, not in every call."""
    values = dict(settings)
    if "signals" in values:
        values["signals"] = dict(values["signals"])
    return OriginSimilarity.from_pretrained(origin, **values)


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class Origin(evaluate.Metric):
    def _info(self) -> evaluate.MetricInfo:
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features({"predictions": text, "references": text}),
            reference_urls=["https://aclanthology.org/2022.tacl-1.33/"],
        )

    # `evaluate` checks only the first element and turns later ones into text: 5 would be compared as "5".
    def add(self, *, prediction: Any = None, reference: Any = None, **kwargs: Any) -> None:
        """Add one pair."""
        _check_texts(predictions=[prediction], references=[reference])
        super().add(prediction=prediction, reference=reference, **kwargs)

    def add_batch(self, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> None:
        """Add pairs."""
        _check_texts(predictions=predictions, references=references)
        super().add_batch(predictions=predictions, references=references, **kwargs)

    def _compute(
        self, predictions: list[str], references: list[str], origin: str = DEFAULT_ORIGIN, **settings: Any
    ) -> dict[str, Any]:
        if "weights" in settings:
            settings["weights"] = _score_weights(settings["weights"])
        if "signals" in settings:
            settings["signals"] = tuple(settings["signals"].items())  # which can be hashed
        system = _open(str(origin), tuple(sorted(settings.items())))
        pairs = [(pair.similarity, pair.spread) for pair in system.compare(predictions, references)]
        scores = [score for score, _ in pairs]
        return {
            "scores": scores,
            "mean": sum(scores) / len(scores) if scores else math.nan,
            "spread": [spread for _, spread in pairs],
            "signature": system.signature,
        }


def _score_weights(weights: Sequence[float]) -> ScoreWeights:
    if len(weights) != len(TERMS):
        raise ValueError(
            f"`weights` must be {len(TERMS)} numbers ({', '.join(TERMS)}), got {len(weights)}: {weights}."
        )
    return ScoreWeights(*weights)


def _check_texts(**sides: Any) -> None:
    for name, texts in sides.items():
        if texts is None or isinstance(texts, str):
            raise ValueError(f"`{name}` must be a list of strings, got {texts!r}.")
        for place, text in enumerate(texts):
            if not isinstance(text, str):
                raise ValueError(f"`{name}` must be strings, but {name}[{place}] is {text!r}.")
