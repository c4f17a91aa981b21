"""`ctxsim evaluate` and `evaluate_similarity`: any system, one table, files with everything, the same bytes twice."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from stage_records import rewrite_stage
from tiny_surrogate import save_tiny

from ctxsim_hf import __version__, evaluate_similarity
from ctxsim_hf.evaluation.examples import GradedPairs
from ctxsim_hf.evaluation.paper_figures import ALL_ROWS, paper_figure
from ctxsim_hf.evaluation.tasks import STS, load_task
from ctxsim_hf.evaluation.word_counts import Columns, Corpus, _count_documents
from ctxsim_hf.runtime.errors import UserError

Run = Callable[..., tuple[int, str, str]]


class LengthSimilarity:
    """Sentences of equal length are alike: anything with this one method will do."""

    def similarity(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> np.ndarray:
        return np.array([-abs(len(a) - len(b)) for a, b in zip(sentences1, sentences2, strict=True)])


def test_any_system(data_root: Path) -> None:
    (result,) = evaluate_similarity(LengthSimilarity(), ["stsb"], "validation", data_root)
    pairs = load_task("stsb", "validation", data_root)
    assert isinstance(pairs, GradedPairs)
    scores = LengthSimilarity().similarity(pairs.sentences1, pairs.sentences2)
    assert (result.task, result.split, result.pairs) == ("stsb", "validation", 12)
    assert result.main.value == pytest.approx(scipy.stats.spearmanr(scores, pairs.scores).statistic)
    assert result.figures["pearson"].value == pytest.approx(scipy.stats.pearsonr(scores, pairs.scores).statistic)
    assert evaluate_similarity(LengthSimilarity(), ["stsb"], "validation", data_root, limit=5)[0].pairs == 5
    with pytest.raises(UserError, match="mteb/sts12-sts"):  # a group of tasks, the first of which is not there
        evaluate_similarity(LengthSimilarity(), ["sts"], data_root=data_root)


def test_results_of_others_are_not_replaced(ctxsim: Run, data_root: Path, tmp_path: Path) -> None:
    words = ("evaluate", "bm25", "--tasks", "stsb", "--data-root", data_root, "--output", tmp_path)
    for name in ("results.md", "results.json"):
        (tmp_path / name).write_text('"mine"')
        code, _, err = ctxsim(*words)
        assert code == 2 and f"{name}' was not written by ctxsim evaluate and would be replaced; move it away" in err
        (tmp_path / name).unlink()
    assert ctxsim(*words)[0] == ctxsim(*words)[0] == 0


def test_one_table_and_the_files(ctxsim: Run, data_root: Path, tmp_path: Path) -> None:
    words = ("evaluate", "tfidf", "--baseline", "b=bm25", "--tasks", "stsb", "--data-root", data_root, "--cases", 1)
    code, out, err = ctxsim(*words, "--output", tmp_path / "out")
    assert code == 0, err
    record = json.loads((tmp_path / "out/results.json").read_text())
    assert record["versions"]["ctxsim_hf"] == __version__
    arguments = record["arguments"]
    assert (arguments["systems"], arguments["baseline"], arguments["limit"]) == (["tfidf"], ["b=bm25"], None)
    first, second = record["results"]
    assert (first["system"], second["system"]) == ("tfidf", "b")
    assert (first["task"], first["split"], first["pairs"]) == ("stsb", "test", 6)
    figure = first["spearman"]
    assert figure["low"] < figure["value"] <= figure["high"]
    shown = f"{100 * figure['value']:.1f} +-{50 * (figure['high'] - figure['low']):.1f}"
    heading, row = next(part for part in out.split("\n\n") if part.startswith("x 100")).splitlines()[:2]
    assert heading.endswith("stsb") and row.split(None, 1) == ["tfidf", shown]
    assert "paper: Origin" in out and "78.5" in out
    (difference,) = record["differences"]
    ahead = figure["value"] - second["spearman"]["value"]
    assert (difference["system"], difference["other"]) == ("tfidf", "b")
    assert difference["stsb"]["value"] == pytest.approx(ahead) and f"{100 * ahead:+.1f}" in out
    markdown = (tmp_path / "out/results.md").read_text()
    assert f"| tfidf | {shown} |" in markdown and "paper: BLEURT" in markdown and "a cat sleeps" in out
    assert (tmp_path / "out/results.png").read_bytes().startswith(b"\x89PNG")
    assert ctxsim(*words, "--output", tmp_path / "again")[0] == 0
    for name in ("results.json", "results.md", "results.png"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name


def test_whoever_learned_from_stsb_has_seen_older_test_pairs(ctxsim: Run, data_root: Path, tmp_path: Path) -> None:
    rows = (data_root / "mteb/stsbenchmark-sts/test.jsonl").read_text()
    (data_root / "mteb/sts13-sts").mkdir()
    (data_root / "mteb/sts13-sts/test.jsonl").write_text(rows)
    folder = save_tiny(tmp_path / "surrogate")
    for data, warned in (("mteb/stsbenchmark-sts", True), ("sentence-transformers/all-nli", False)):
        rewrite_stage(folder, command="train surrogate", inputs={"data": {"name": data}})
        for task in ("sts13", "stsb"):
            words = ("evaluate", f"tuned=surrogate:{folder}", "--tasks", task, "--data-root", data_root)
            code, out, err = ctxsim(*words)
            assert code == 0, err
            assert ("tuned was trained on stsb" in out) == (warned and task == "sts13")


def test_systems_of_one_name_are_seeds(ctxsim: Run, data_root: Path, tmp_path: Path) -> None:
    pairs = load_task("stsb", "test", data_root).pairs()
    for seed in (1, 2):
        scores = np.random.default_rng(seed).normal(size=6)
        lines = [f"{a}\t{b}\t{score}\n" for a, b, score in zip(*pairs, scores, strict=True)]
        (tmp_path / str(seed)).write_text("".join(lines))
    words = [f"ours=scores:{tmp_path / str(seed)}" for seed in (1, 2)]
    code, out, err = ctxsim(
        "evaluate", *words, "--tasks", "stsb", "--data-root", data_root, "--output", tmp_path / "out"
    )
    assert code == 0, err
    (row,) = json.loads((tmp_path / "out/results.json").read_text())["results"]
    seeds = row["seeds"]["spearman"]
    assert row["spearman"]["value"] == pytest.approx(np.mean(seeds)) and len(seeds) == 2
    assert f" sd {100 * np.std(seeds, ddof=1):.1f}" in out


def test_a_constant_system_says_so(ctxsim: Run, data_root: Path, tmp_path: Path) -> None:
    rows = [{"sentence1": "one", "sentence2": "other", "score": score} for score in (1, 2, 3)]
    (data_root / "mteb/stsbenchmark-sts/test.jsonl").write_text("\n".join(map(json.dumps, rows)))
    words = ("evaluate", "tfidf", "bm25", "--tasks", "stsb", "--data-root", data_root, "--output", tmp_path)
    code, out, _ = ctxsim(*words)
    assert code == 0
    assert "tfidf on stsb: no figure, all 3 scores of the system are 0" in out and "nan" not in out
    first = json.loads((tmp_path / "results.json").read_text(), parse_constant=pytest.fail)["results"][0]
    assert first["spearman"]["value"] is None  # nan is no JSON
    assert first["spearman"]["undefined"] == "all 3 scores of the system are 0"


def test_triplets_are_in_the_same_table(ctxsim: Run, data_root: Path) -> None:
    tasks = ("--tasks", "stsb", "wikipedia-sections", "--split", "validation")
    code, out, err = ctxsim("evaluate", "tfidf", *tasks, "--data-root", data_root)
    assert code == 0, err
    heading, row = next(part for part in out.split("\n\n") if part.startswith("x 100")).splitlines()
    assert heading.endswith("wikipedia-sections") and row.endswith("50.0 +-0.0")  # no words in common: all equal


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "expected a system, such as tfidf or surrogate:DIR"),
        (("infersent",), "unknown system 'infersent'; expected one of origin:DIR"),
        (("tfidf", "--tasks", "stsb", "sts17"), "unknown task 'sts17'"),
        (("tfidf", "--tasks", "stsb", "--split", "dev"), "no split 'dev'"),
        (("tfidf", "--split", "validation"), "'sts12' has no split 'validation'"),
        (("tfidf", "--limit", "1"), "--limit must be at least 2, got 1"),
        (("tfidf", "--cases", "3"), "compares two systems"),
        (("tfidf", "--data-root", "nowhere"), "'nowhere/mteb/sts12-sts', which does not exist"),
    ],
)
def test_what_a_user_can_get_wrong(ctxsim: Run, words: tuple[str, ...], message: str) -> None:
    code, out, err = ctxsim("evaluate", *words)
    assert (code, out) == (2, "")
    assert err.startswith("ctxsim evaluate: ") and message in err and err.count("\n") == 1


@pytest.mark.parametrize("kind", ["tfidf", "letters", "bm25", "sif:vectors.txt", "usif:vectors.txt"])
def test_no_text_to_count_words_in_is_said_at_once(ctxsim: Run, data_root: Path, tmp_path: Path, kind: str) -> None:
    (tmp_path / "mteb").symlink_to(data_root / "mteb")
    before = f"scores:{tmp_path / 'absent'}"  # which would be said, were it opened first
    code, _, err = ctxsim("evaluate", before, kind, "--tasks", "stsb", "--data-root", tmp_path)
    assert code == 2 and "needs text to count them in" in err and err.count("\n") == 1


@pytest.mark.parametrize("kind", ["origin", "surrogate", "scores"])
def test_a_system_that_is_not_there(ctxsim: Run, data_root: Path, tmp_path: Path, kind: str) -> None:
    words = (f"{kind}:{tmp_path / 'absent'}", "--tasks", "stsb", "--data-root", data_root)
    code, _, err = ctxsim("evaluate", *words)
    assert code == 2
    assert str(tmp_path / "absent") in err and err.count("\n") == 1


def test_the_papers_averages() -> None:
    averages = {"Origin": 76.93, "Surrogate base": 74.06, "Surrogate large": 75.20, "USE": 71.22, "BERT [CLS]": 29.19}
    for row, average in averages.items():
        figures = [paper_figure(row, task, "spearman") for task in STS]
        assert np.mean([figure for figure in figures if figure]) == pytest.approx(average / 100, abs=6e-5)
    assert {paper_figure(row, "afs", "pearson") is None for row in ALL_ROWS} == {False}
    assert paper_figure("Origin", "wikipedia-sections", "accuracy") is None


def test_tfidf_on_real_data(shared_data: Path) -> None:
    # Word weights from 2 % of the text at hand; all of it gives 76.
    names = ("bbc_news", "onestop_english", "flickr8k")
    tfidf = _count_documents([Corpus(str(shared_data / "corpora" / name), Columns(), 10**6) for name in names])
    (result,) = evaluate_similarity(tfidf, ["stsb"], "validation", shared_data)
    assert result.pairs == 1500
    assert 0.70 < result.main.low < result.main.value < result.main.high < 0.82
    assert result.figures["pearson"].value > 0.70
