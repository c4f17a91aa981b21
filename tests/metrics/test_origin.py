"""`evaluate.load` of the Origin metric, by the real library."""

import doctest
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import evaluate
import pytest

ROOT = Path(__file__).parents[2]
FIRST = ["A cat sat there.", "There the cat sat."]
SECOND = ["There was a dog.", "There the cat sat."]


@pytest.fixture
def home(planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory in which the public names are folders."""
    (tmp_path / "ctxsim").mkdir()
    (tmp_path / "ctxsim/origin").symlink_to(ROOT / "metrics/origin")
    (tmp_path / "ctxsim/origin-light").symlink_to(planted / "origin")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def metric(home: Path) -> evaluate.EvaluationModule:
    return evaluate.load("ctxsim/origin")


def test_compute(metric: Any, planted: Path) -> None:
    from ctxsim_hf import OriginSimilarity

    result = metric.compute(predictions=FIRST, references=SECOND)
    expected = OriginSimilarity.from_pretrained(planted / "origin")
    assert result["scores"] == pytest.approx(expected.similarity(FIRST, SECOND).tolist())
    assert result["mean"] == pytest.approx(sum(result["scores"]) / 2)
    assert len(result["spread"]) == 2 and result["signature"] == expected.signature
    again = evaluate.load(str(ROOT / "metrics/origin"))
    assert again.compute(predictions=FIRST, references=SECOND, origin=str(planted / "origin")) == result


def test_one_at_a_time_and_in_batches(metric: Any) -> None:
    whole = metric.compute(predictions=FIRST, references=SECOND)
    for first, second in zip(FIRST, SECOND, strict=True):
        metric.add(prediction=first, reference=second)
    assert metric.compute() == whole
    metric.add_batch(predictions=FIRST, references=SECOND)
    assert metric.compute() == whole


def test_settings(metric: Any) -> None:
    whitened, cosine = (
        metric.compute(predictions=FIRST, references=SECOND, compare_by=comparison, weights=[0, 1, 1, 1])
        for comparison in ("whitened", "cosine")
    )
    assert whitened["signature"] != cosine["signature"]
    assert "compare_by:cosine" in cosine["signature"] and "weights:0,1,1,1" in cosine["signature"]
    assert cosine["scores"][0] > 0.9
    for weights in ([1, 1, 1], [1, 1, 1, 1, 1]):
        expected = rf"`weights` must be 4 numbers \(discriminative, sentence, left, right\), got {len(weights)}"
        with pytest.raises(ValueError, match=expected):
            metric.compute(predictions=FIRST, references=SECOND, weights=weights)


def test_signals(metric: Any, planted: Path) -> None:
    from ctxsim_hf import OriginSimilarity

    signals = {"contexts": 1, "words": 0.5}
    result = metric.compute(predictions=FIRST, references=SECOND, signals=signals)
    expected = OriginSimilarity.from_pretrained(planted / "origin", signals=signals)
    assert result["scores"] == pytest.approx(expected.similarity(FIRST, SECOND).tolist())
    assert "|signals:contexts=1+words=0.5|" in result["signature"]
    assert result["scores"] != metric.compute(predictions=FIRST, references=SECOND)["scores"]


def test_odd_input(metric: Any) -> None:
    empty = metric.compute(predictions=[], references=[])
    assert empty["scores"] == [] and empty["spread"] == [] and math.isnan(empty["mean"])
    with pytest.raises(ValueError, match="Mismatch in the number of predictions"):
        metric.compute(predictions=FIRST, references=SECOND[:1])
    with pytest.raises(ValueError, match=r"predictions\[1\] is None"):
        metric.compute(predictions=["a", None], references=SECOND)
    with pytest.raises(ValueError, match=r"references\[1\] is 5"):
        metric.compute(predictions=FIRST, references=["a", 5])
    with pytest.raises(ValueError, match="`references` must be a list of strings, got None"):
        metric.compute(predictions=FIRST)
    with pytest.raises(ValueError, match="is None"):
        metric.add(prediction="a")
    # What was refused left nothing behind.
    assert len(metric.compute(predictions=FIRST, references=SECOND)["scores"]) == 2


ONE_OF_TWO = """
import json, sys, evaluate
rank, first, second = int(sys.argv[1]), sys.argv[2], sys.argv[3]
metric = evaluate.load("ctxsim/origin", num_process=2, process_id=rank, experiment_id="two", cache_dir="cache")
print(json.dumps(metric.compute(predictions=[first], references=[second])))
"""


def test_two_processes(metric: Any, home: Path) -> None:
    whole = metric.compute(predictions=FIRST, references=SECOND)
    words = [[sys.executable, "-c", ONE_OF_TWO, str(rank), FIRST[rank], SECOND[rank]] for rank in (0, 1)]
    processes = [subprocess.Popen(line, stdout=subprocess.PIPE, text=True, cwd=home) for line in words]
    found = [json.loads(process.communicate(timeout=120)[0]) for process in processes]
    assert found[1] is None and found[0]["scores"] == pytest.approx(whole["scores"], abs=1e-5)


def test_models_are_opened_once(metric: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from ctxsim_hf.origin.similarity import OriginSimilarity

    metric.compute(predictions=FIRST, references=SECOND)

    def refuse(*arguments: Any, **keywords: Any) -> None:
        raise AssertionError("opened again")

    monkeypatch.setattr(OriginSimilarity, "from_pretrained", refuse)
    metric.compute(predictions=FIRST, references=SECOND)
    evaluate.load("ctxsim/origin").compute(predictions=FIRST, references=SECOND)


def test_the_docstrings_example(metric: Any) -> None:
    examples = doctest.DocTestParser().get_doctest(
        metric.inputs_description, {"evaluate": evaluate}, "origin", None, 0
    )
    assert len(examples.examples) == 4
    assert doctest.DocTestRunner().run(examples).failed == 0
