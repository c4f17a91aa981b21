"""Judged pairs of the user's own: files of four kinds, folders, scores and labels, one line for each fault."""

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from ctxsim_hf import evaluate_similarity
from ctxsim_hf.evaluation.examples import GradedPairs, LabelledPairs
from ctxsim_hf.evaluation.label_measures import auc, average_precision, measure_labels
from ctxsim_hf.evaluation.own_data import split_name
from ctxsim_hf.evaluation.own_pairs import load_pairs
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.estimates import NUM_RESAMPLES

Run = Callable[..., tuple[int, str, str]]

ROWS = [
    ("a cat sleeps", "the cat sleeps", 1),
    ('he said "no', "a bird sings", 0),
    ("a dog barks", "a dog barks, loudly", 1),
    ("rain", "a red sea", 0),
    ("the red bird", "the red bird", 1),
    ("one", "another", 0),
]


def as_dicts(judgement: str = "label") -> list[dict[str, object]]:
    return [{"sentence1": a, "sentence2": b, judgement: value} for a, b, value in ROWS]


def write(path: Path, judgement: str = "label") -> Path:
    rows = as_dicts(judgement)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
        return path
    if ".jsonl" in path.name:
        text = "\n".join(map(json.dumps, rows))
    elif ".tsv" in path.name:
        text = "\n".join("\t".join(map(str, row)) for row in [("sentence1", "sentence2", judgement), *ROWS])
    else:
        cells = [[str(cell).replace('"', '""') for cell in row] for row in ROWS]
        text = f"sentence1,sentence2,{judgement}\n" + "\n".join(f'"{a}","{b}",{value}' for a, b, value in cells)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


class CommonLetters:
    def similarity(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> np.ndarray:
        return np.array([len(set(a) & set(b)) for a, b in zip(sentences1, sentences2, strict=True)])


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(
    ("measure", "theirs"), [(average_precision, average_precision_score), (auc, roc_auc_score)], ids=["AP", "AUC"]
)
def test_measures_are_scikit_learns_in_every_resample(
    measure: Callable[..., np.ndarray], theirs: Callable[..., float], tied: bool
) -> None:
    generator = np.random.default_rng(0)
    labels = generator.integers(2, size=60).astype(float)
    scores = generator.normal(size=60) + labels
    scores = scores.round() if tied else scores
    estimate = measure_labels(measure, scores, labels)
    assert estimate.value == pytest.approx(theirs(labels, scores))
    draws = np.random.default_rng(0).integers(60, size=(NUM_RESAMPLES, 60))[:50]
    expected = [theirs(labels[draw], scores[draw]) for draw in draws]
    assert estimate.resampled[:50] == pytest.approx(expected)
    assert estimate.low < estimate.value < estimate.high


def test_a_resample_of_one_label_has_no_figure() -> None:
    assert np.isnan(auc(np.array([[2, 1]]), np.array([[0, 0]]))).all()
    assert np.isnan(average_precision(np.array([[0, 0]]), np.array([[2, 1]]))).all()
    estimate = measure_labels(auc, np.array([1.0, 2, 3]), np.array([0.0, 1, 1]))
    assert np.isnan(estimate.resampled).any() and 0 <= estimate.low <= estimate.value == 1
    assert measure_labels(auc, np.ones(2), np.ones(2)).undefined == "all 2 pairs have one label"


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "tsv", "tsv.gz", "csv", "parquet"])
def test_files(tmp_path: Path, ending: str) -> None:
    pairs = load_pairs(str(write(tmp_path / f"medical/pairs/validation.{ending}")))
    assert isinstance(pairs, LabelledPairs)
    assert (pairs.task, pairs.split) == ("medical", "validation")
    assert [*zip(pairs.sentences1, pairs.sentences2, pairs.scores, strict=True)] == ROWS
    (remark,) = pairs.remarks
    assert "3 of 6 pairs have label 1, so by chance average precision is 50.0" in remark
    assert isinstance(pairs.some(2), LabelledPairs)
    graded = load_pairs(str(write(tmp_path / f"mine.{ending}", "score")))
    assert type(graded) is GradedPairs and (graded.task, graded.split) == ("mine", "all")


def test_a_folder_has_splits(tmp_path: Path) -> None:
    write(tmp_path / "medical/pairs/validation.jsonl")
    assert load_pairs(str(tmp_path / "medical/pairs"), "validation").task == "medical"
    with pytest.raises(UserError, match=r"the split 'test' of a dataset \(--split\) .*validation"):
        load_pairs(str(tmp_path / "medical/pairs"))


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("medical/pairs/validation.jsonl.gz", "medical"),
        ("data/mine.tsv", "mine"),
        ("pairs.csv", "pairs"),
        ("../test.tsv", "test"),
        ("me/questions", "questions"),
        ("hausa/data/train-00000-of-00001.parquet", "hausa"),
        ("ours=some/where.tsv", "ours"),
    ],
)
def test_names(spelling: str, name: str) -> None:
    assert split_name(spelling) == (name, spelling.removeprefix("ours="))


def test_in_one_table(ctxsim: Run, data_root: Path, tmp_path: Path) -> None:
    labelled, graded = write(tmp_path / "labelled.tsv"), write(tmp_path / "graded.jsonl", "score")
    words = ("evaluate", "tfidf", "letters", "--pairs", labelled, graded, "--data-root", data_root)
    code, out, err = ctxsim(*words, "--cases", 1, "--output", tmp_path / "out")
    assert code == 0, err
    assert "labelled (AP)  graded" in out and "AUC (by chance, 50)" in out and "Pearson" in out
    assert "labelled: 3 of 6 pairs have label 1" in out and "sts12" not in out
    rows = json.loads((tmp_path / "out/results.json").read_text())["results"]
    assert [(row["system"], row["task"], row["pairs"]) for row in rows] == [
        *[("tfidf", "labelled", 6), ("tfidf", "graded", 6)],
        *[("letters", "labelled", 6), ("letters", "graded", 6)],
    ]
    assert rows[0]["average_precision"]["value"] == rows[0]["auc"]["value"] == 1 and "spearman" in rows[1]
    assert (tmp_path / "out/results.png").read_bytes().startswith(b"\x89PNG")
    code, out, err = ctxsim("evaluate", "tfidf", "--tasks", "stsb", "--pairs", labelled, "--data-root", data_root)
    assert code == 0 and "stsb" in out and "labelled (AP)" in out, err


def test_in_python(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.tsv")
    (result,) = evaluate_similarity(CommonLetters(), pairs=path)
    scores = CommonLetters().similarity(*load_pairs(str(path)).pairs())
    assert result.task == "mine"
    assert result.main.value == pytest.approx(average_precision_score([row[2] for row in ROWS], scores))
    other = write(tmp_path / "other.csv", "score")
    assert [r.task for r in evaluate_similarity(CommonLetters(), pairs=[path, other], limit=4)] == ["mine", "other"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"sentence1": "a", "sentence2": "b"}], "a column 'score' or 'label' in .*, found only sentence1, sentence2"),
        ([{"sentence1": "a", "score": 1}], "a column 'sentence2' in .*, found only sentence1, score"),
        ([{"sentence1": "a", "sentence2": "b", "score": "high"}], "line 1: expected a finite number .* got 'high'"),
        ([{"sentence1": "a", "sentence2": "b", "score": float("nan")}], "line 1: expected a finite number .* got nan"),
        ([{"sentence1": "a", "sentence2": "b", "score": None}], "expected a finite number .* got None"),
        ([{"sentence1": "a", "sentence2": None, "score": 1}], "expected strings, but sentence2 of .*line 1 is None"),
        ([{"sentence1": "a", "sentence2": "b", "score": 1, "label": 1}], "found both; leave one out"),
        (
            [{"sentence1": "a", "sentence2": "b", "label": 2}],
            "line 1: expected a label 0 or 1, got 2; call",
        ),
        ([{"sentence1": "a", "sentence2": "b", "label": 1}] * 3, "both labels in .*, but all 3 have 1"),
        ([], "expected rows in .*, found none"),
    ],
)
def test_rows_that_are_wrong(ctxsim: Run, tmp_path: Path, rows: list[dict[str, object]], message: str) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(UserError, match=message):
        load_pairs(str(path))
    code, out, err = ctxsim("evaluate", "tfidf", "--pairs", path)
    assert (code, out, err.count("\n")) == (2, "", 1) and err.startswith("ctxsim evaluate: ")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("mine.txt", b"a\tb\t1", "expected a name that ends in .jsonl, "),
        ("mine.tsv", b"sentence1\tsentence2\tscore\na\tb", "line 2: expected 3 cells, as in the heading"),
        ("mine.tsv", b"sentence1\tsentence2\tscore\na\tb\t1\t2", "line 2: expected 3 cells, as in the heading"),
        ("mine.csv", b"sentence1,sentence2,score\n\xff,b,1", "cannot read .*utf-8"),
        ("mine.jsonl.gz", b"no gzip", "cannot read .*gzip"),
        ("mine.parquet", b"no parquet", "cannot read .*arquet"),
        ("mine.jsonl", b"{}\n{", "line 2: expected a JSON object"),
    ],
)
def test_files_that_are_wrong(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message):
        load_pairs(str(tmp_path / name))


def test_what_is_not_there_or_twice(ctxsim: Run, data_root: Path, tmp_path: Path) -> None:
    for absent in (tmp_path / "absent", "absent.tsv"):
        with pytest.raises(UserError, match="is no file or folder here"):
            load_pairs(str(absent))
    first, second = write(tmp_path / "one/mine.tsv"), write(tmp_path / "other/mine.tsv")
    code, _, err = ctxsim("evaluate", "tfidf", "--pairs", first, second, "--data-root", data_root)
    assert code == 2 and "two tasks are called 'mine'; give one of them another name: NAME=FILE" in err
    assert ctxsim("evaluate", "tfidf", "--pairs", first, f"b={second}", "--data-root", data_root)[0] == 0
    code, _, err = ctxsim("evaluate", "tfidf", "--pairs", first, "--label-free", "--chunks", "chunks")
    assert code == 2 and "leave out --pairs and --retrieval" in err


def test_labels_of_real_pairs(ctxsim: Run, shared_data: Path) -> None:
    if not (shared_data / "domains").is_dir():
        pytest.skip("needs ../shared/data/domains, which is not part of this project")
    (result,) = evaluate_similarity(CommonLetters(), pairs=shared_data / "domains/medical/pairs/validation.jsonl.gz")
    assert (result.task, result.split, result.pairs) == ("medical", "validation", 1524)
    assert 0.5 < result.main.low < result.main.value < 0.75
