"""`ctxsim evaluate` and `evaluate_similarity`: any system, a plain table, a JSON file with everything."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from ctxsim_hf import __version__, evaluate_similarity
from ctxsim_hf.corpus.lexical import TfidfCosine
from ctxsim_hf.evaluation.baselines import _document_sentences
from ctxsim_hf.evaluation.tasks import load_task

Run = Callable[..., tuple[int, str, str]]


class LengthSimilarity:
    """Sentences of equal length are alike: anything with this one method will do."""

    def similarity(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> np.ndarray:
        return np.array([-abs(len(a) - len(b)) for a, b in zip(sentences1, sentences2, strict=True)])


def test_any_system(data_root: Path) -> None:
    (result,) = evaluate_similarity(LengthSimilarity(), ["stsb"], "validation", data_root)
    pairs = load_task("stsb", "validation", data_root)
    scores = LengthSimilarity().similarity(pairs.sentences1, pairs.sentences2)
    assert (result.task, result.split, result.pairs) == ("stsb", "validation", 12)
    assert result.spearman.value == pytest.approx(scipy.stats.spearmanr(scores, pairs.scores).statistic)
    assert result.pearson.value == pytest.approx(scipy.stats.pearsonr(scores, pairs.scores).statistic)
    assert evaluate_similarity(LengthSimilarity(), ["stsb"], "validation", data_root, limit=5)[0].pairs == 5


def test_the_table_and_the_file(ctxsim: Run, data_root: Path, tmp_path: Path) -> None:
    flags = ("--baseline", "tfidf", "--tasks", "stsb", "--split", "test", "--data-root", data_root)
    code, out, err = ctxsim("evaluate", *flags, "--output", tmp_path / "results.json")
    assert code == 0, err
    record = json.loads((tmp_path / "results.json").read_text())
    (result,) = record["results"]
    assert (record["system"], record["versions"]["ctxsim_hf"]) == ("tfidf", __version__)
    assert (record["arguments"]["split"], record["arguments"]["limit"]) == ("test", None)
    assert (result["task"], result["split"], result["pairs"]) == ("stsb", "test", 6)
    name, header, row = out.splitlines()
    assert (name, header.split()[:3], row.split()[:3]) == ("tfidf", ["task", "split", "pairs"], ["stsb", "test", "6"])
    spearman, pearson = result["spearman"], result["pearson"]
    assert spearman["low"] < spearman["value"] <= spearman["high"]
    for figure in (spearman, pearson):
        low, value, high = (f"{100 * figure[key]:.1f}" for key in ("low", "value", "high"))
        assert f"{value} ({low} to {high})" in row
    before = (tmp_path / "results.json").read_bytes()
    assert ctxsim("evaluate", *flags, "--output", tmp_path / "results.json")[:2] == (0, out)
    assert (tmp_path / "results.json").read_bytes() == before


def test_a_constant_system_says_so(ctxsim: Run, data_root: Path, tmp_path: Path) -> None:
    rows = [{"sentence1": "one", "sentence2": "other", "score": score} for score in (1, 2, 3)]
    path = data_root / "mteb/stsbenchmark-sts/test.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    output = tmp_path / "results.json"
    code, out, _ = ctxsim("evaluate", "--baseline", "tfidf", "--data-root", data_root, "--output", output)
    assert code == 0
    assert out.endswith("stsb: no correlation, all 3 scores of the system are 0\n")
    (result,) = json.loads(output.read_text(), parse_constant=pytest.fail)["results"]  # nan is no JSON
    assert result["spearman"]["value"] is None
    assert result["spearman"]["undefined"] == "all 3 scores of the system are 0"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((), "expected one of --origin FOLDER and --baseline NAME, got neither"),
        (("--origin", "o", "--baseline", "tfidf"), "got both"),
        (("--baseline", "bm25"), "unknown baseline 'bm25'; expected one of tfidf"),
        (("--baseline", "tfidf", "--tasks", "stsb", "sts"), "unknown task 'sts'"),
        (("--baseline", "tfidf", "--split", "dev"), "no split 'dev'"),
        (("--baseline", "tfidf", "--limit", "1"), "--limit must be at least 2, got 1"),
        (("--baseline", "tfidf", "--data-root", "nowhere"), "which does not exist"),
        (("--origin", "o", "--chunks", "c"), "leave it out with --origin"),
    ],
)
def test_what_a_user_can_get_wrong(ctxsim: Run, flags: tuple[str, ...], message: str) -> None:
    code, out, err = ctxsim("evaluate", *flags)
    assert (code, out) == (2, "")
    assert err.startswith("ctxsim evaluate: ") and message in err and err.count("\n") == 1


def test_an_origin_that_is_not_there(ctxsim: Run, data_root: Path, tmp_path: Path) -> None:
    code, _, err = ctxsim("evaluate", "--origin", tmp_path / "origin", "--data-root", data_root)
    assert code == 2
    assert str(tmp_path / "origin") in err and err.count("\n") == 1


def test_tfidf_on_real_data(shared_data: Path) -> None:
    # Word weights from 2 % of the text at hand; all of it gives 76.
    tfidf = TfidfCosine.from_sentences(
        _document_sentences([shared_data / "corpora" / name for name in ("bbc_news", "onestop_english", "flickr8k")])
    )
    (result,) = evaluate_similarity(tfidf, ["stsb"], "validation", shared_data)
    assert result.pairs == 1500
    assert 0.70 < result.spearman.low < result.spearman.value < result.spearman.high < 0.82
    assert result.pearson.value > 0.70
