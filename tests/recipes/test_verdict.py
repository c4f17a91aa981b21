"""The verdict of `ctxsim adapt`: what it says of made-up figures."""

from typing import Any

import pytest

from ctxsim_hf.recipes.verdict import WITHOUT_LEARNING, loses, verdict


def results(own: tuple[float, float], **ahead: tuple[float, float]) -> dict[str, Any]:
    """Return the content of results.json for a surrogate with this interval, and its leads over others."""

    def figure(low: float, high: float) -> dict[str, float]:
        return {"value": (low + high) / 2, "low": low, "high": high}

    rows = [{"system": "surrogate", "task": "yardstick", "auc": figure(*own)}, {"system": "x", "task": "adjacent"}]
    return {"results": rows, "differences": [{"other": o, "yardstick": figure(*lead)} for o, lead in ahead.items()]}


def level(low: float, high: float, **others: tuple[float, float]) -> dict[str, tuple[float, float]]:
    """Return this lead over everything that learns nothing, but for `others`."""
    return dict.fromkeys(WITHOUT_LEARNING, (low, high)) | others


@pytest.mark.parametrize(
    ("own", "ahead", "start", "said"),
    [
        ((0.49, 0.55), level(0.1, 0.2), None, "no better than chance"),
        ((0.6, 0.7), level(0.01, 0.05), None, "Use it: it is better than matching words."),
        ((0.6, 0.7), level(0.01, 0.05, bm25=(-0.01, 0.05)), None, "no better than bm25; either will do"),
        ((0.6, 0.7), level(-0.01, 0.05), None, "no better than words, tfidf and bm25; any will do"),
        ((0.6, 0.7), level(0.01, 0.05, words=(-0.05, -0.01)), None, "Do not use it: words did better"),
        ((0.6, 0.7), {"start": (0.01, 0.02), "tfidf": (-0.2, -0.1)}, "start", "better than what you started from"),
        ((0.6, 0.7), {"start": (-0.02, -0.01)}, "start", "Do not use it: start did better"),
        ((0.6, 0.7), {"start": (-0.01, 0.01)}, "start", "no better than start"),
    ],
)
def test_verdict(
    own: tuple[float, float], ahead: dict[str, tuple[float, float]], start: str | None, said: str
) -> None:
    assert said in verdict(results(own, **ahead), "surrogate", start)


def test_a_start_that_was_not_beaten() -> None:
    tie = results((0.6, 0.7), start=(0.0, 0.0))
    assert "the start is what you have here" in verdict(tie, "surrogate", "start", is_start=True)
    assert not loses(tie, "start") and loses(results((0.6, 0.7), start=(-0.02, -0.01)), "start")
    assert not loses(results((0.6, 0.7), tfidf=(-0.02, -0.01)), "start"), "with a language model, it is not compared"
    from_nothing = verdict(results((0.6, 0.7), **level(0.01, 0.05)), "surrogate", None, is_start=True)
    assert from_nothing.startswith("Training did not make it better") and "better than matching words" in from_nothing
