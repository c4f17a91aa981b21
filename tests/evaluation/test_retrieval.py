"""Retrieval: nDCG@10 and MRR@10 by hand and against scikit-learn, BM25 by its formula, every kind of system ranks."""

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import ndcg_score
from tiny_surrogate import save_tiny

from ctxsim_hf import evaluate_similarity
from ctxsim_hf.encoder.encoder_signal import EncoderSignal
from ctxsim_hf.evaluation import ranking
from ctxsim_hf.evaluation.bm25 import K1, B, Bm25, bm25_vectors
from ctxsim_hf.evaluation.fusion import ReciprocalRankFusion
from ctxsim_hf.evaluation.ranking import describe_ranking, top_documents
from ctxsim_hf.evaluation.retrieval import Retrieval
from ctxsim_hf.evaluation.retrieval_data import load_retrieval
from ctxsim_hf.evaluation.systems import PairScorer
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.letters import LetterCosine
from ctxsim_hf.text.lexical import TfidfCosine
from ctxsim_hf.text.words import words

Run = Callable[..., tuple[int, str, str]]

DOCUMENTS = {
    "d1": "The cat sleeps. A cat, a cat!",
    "d2": "A dog barks at the cat.",
    "d3": "The sea is red in the evening, and the wind is cold.",
    "d4": "Birds sing.",
}
QUERIES: list[dict[str, object]] = [
    {"id": "1", "query": "cat cat sleeping", "relevant": {"d1": 2, "d2": 1}},
    {"id": "2", "query": "a cold red sea", "relevant": {"d3": 1, "gone": 1}},
    {"id": "3", "query": "nothing is relevant", "relevant": {}},
]
COUNTS = TfidfCosine.from_sentences(list(DOCUMENTS.values()))


def write_rows(path: Path, rows: Sequence[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, rows)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "animals"
    write_rows(folder / "corpus/train.jsonl", [{"id": id, "text": text} for id, text in DOCUMENTS.items()])
    write_rows(folder / "queries/validation.jsonl", QUERIES)
    return folder


def made_up(num_queries: int = 12, num_documents: int = 30) -> tuple[Retrieval, np.ndarray]:
    """A task of random grades from 0 to 3, and random scores of (queries, documents)."""
    generator = np.random.default_rng(0)
    grades = generator.integers(4, size=(num_queries, num_documents)) * (generator.random((num_queries, 30)) < 0.2)
    grades[:, 0] = 1
    ids = [f"d{place}" for place in range(num_documents)]
    queries = [f"q{place}" for place in range(num_queries)]
    by_id = [dict(zip(ids, row.tolist(), strict=True)) for row in grades]
    return Retrieval("made up", "all", queries, ids, ids, by_id), generator.normal(size=(num_queries, num_documents))


def test_ndcg_is_scikit_learns() -> None:
    task, scores = made_up()
    grades = np.array([list(row.values()) for row in task.grades])
    top = np.argsort(-scores, axis=1)[:, :10]
    figures = task.judge(top)
    assert list(figures) == ["ndcg_at_10", "mrr_at_10"]
    assert figures["ndcg_at_10"].value == pytest.approx(ndcg_score(grades, scores, k=10))
    assert figures["ndcg_at_10"].low < figures["ndcg_at_10"].value < figures["ndcg_at_10"].high
    ranks = [np.flatnonzero(found) + 1 for found in np.take_along_axis(grades, top, axis=1) > 0]
    assert figures["mrr_at_10"].value == pytest.approx(np.mean([1 / row[0] if len(row) else 0 for row in ranks]))


def test_figures_by_hand(folder: Path) -> None:
    task = load_retrieval(str(folder), "validation")
    assert (task.task, task.split, len(task)) == ("animals", "validation", 2)  # nothing is relevant to the third
    figures = task.judge(np.array([[3, 1, 0, 2], [0, 1, 3, 2]]))
    first = (1 / math.log2(3) + 2 / math.log2(4)) / (2 + 1 / math.log2(3))
    second = (1 / math.log2(5)) / (1 + 1 / math.log2(3))  # a relevant document is not there to be found
    assert figures["ndcg_at_10"].value == pytest.approx((first + second) / 2)
    assert figures["mrr_at_10"].value == pytest.approx((1 / 2 + 1 / 4) / 2)
    assert "relevant ones that the corpus lacks, counted as missed: 1" in task.remarks[0]
    assert task.some(1).queries == ["cat cat sleeping"]


def test_bm25_by_its_formula() -> None:
    queries, documents = ["cat cat the sea", "unheard"], [*DOCUMENTS.values(), ""]
    asked, held = bm25_vectors(queries, documents)
    bags = [words(document) for document in documents]
    mean = np.mean([len(bag) for bag in bags])

    def score(query: str, bag: list[str]) -> float:
        total = 0.0
        for word in words(query):
            df = sum(word in other for other in bags)
            idf = math.log(1 + (len(bags) - df + 0.5) / (df + 0.5))
            tf = bag.count(word)
            total += idf * tf * (K1 + 1) / (tf + K1 * (1 - B + B * len(bag) / mean))
        return total

    expected = [[score(query, bag) for bag in bags] for query in queries]
    assert (asked @ held.T).toarray() == pytest.approx(np.array(expected))


@pytest.mark.parametrize("system", [COUNTS, LetterCosine(COUNTS)], ids=["tfidf", "letters"])
def test_sparse_vectors_give_the_similarity(system: TfidfCosine | LetterCosine) -> None:
    texts = [*DOCUMENTS.values(), "", "unheard cats sleep"]
    vectors = system.vectors(texts)
    pairs = [(a, b) for a in texts for b in texts]
    one_by_one = system.similarity(*map(list, zip(*pairs, strict=True))).reshape(len(texts), -1)
    assert (vectors @ vectors.T).toarray() == pytest.approx(one_by_one)


def letters_of(texts: Sequence[str]) -> np.ndarray:
    return np.array([[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts])


@pytest.mark.parametrize("at_once", [1, 10**6])
def test_every_way_to_rank(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "_SCORES_AT_ONCE", at_once)  # blocks of one query, or all at once
    queries, documents = ["the cat", "dogs bark in the evening"], list(DOCUMENTS.values())
    encoder = EncoderSignal(letters_of)
    by_vectors = top_documents(encoder, queries, documents, 3)
    pairs = [(query, document) for query in queries for document in documents]
    scores = encoder.similarity(*map(list, zip(*pairs, strict=True))).reshape(2, -1)
    assert by_vectors.tolist() == np.argsort(-scores, axis=1, kind="stable")[:, :3].tolist()
    # The same cosines without vectors: all four documents are among the first hundred of BM25.
    assert top_documents(PairScorer(encoder.similarity), queries, documents, 3).tolist() == by_vectors.tolist()
    assert top_documents(Bm25(COUNTS), ["cat"], documents, 2).tolist() == [[0, 1]]
    assert top_documents(Bm25(COUNTS), ["unheard"], documents, 9).tolist() == [[0, 1, 2, 3]]  # ties keep their order


def test_pairs_are_asked_for_the_first_of_bm25_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "RERANKED", 2)
    asked = []

    def longest(queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
        asked.extend(documents)
        return np.array([len(document) for document in documents])

    top = top_documents(PairScorer(longest), ["cat"], list(DOCUMENTS.values()), 3)
    assert top[0, :2].tolist() == [0, 1] and asked == [DOCUMENTS["d1"], DOCUMENTS["d2"]]
    with pytest.raises(UserError, match="a finite score for each of 2 pairs"):
        top_documents(PairScorer(lambda a, b: np.full(len(a), np.nan)), ["cat"], list(DOCUMENTS.values()), 3)


def test_fusion_by_hand() -> None:
    fused = ReciprocalRankFusion([]).fuse([np.array([[3.0, 2, 1]]), np.array([[1.0, 2, -np.inf]])])
    assert fused == pytest.approx(np.array([[1 / 61 + 1 / 62, 1 / 62 + 1 / 61, 1 / 63]]))


def test_in_one_table(ctxsim: Run, folder: Path, tmp_path: Path) -> None:
    surrogate = save_tiny(tmp_path / "surrogate")
    systems = ("tfidf", "letters", "bm25", f"s=surrogate:{surrogate}", f"st=st:{surrogate}", f"hf=hf:{surrogate}")
    systems += (f"both=rrf:bm25+surrogate:{surrogate}",)
    long = [{"id": id, "text": text * 20} for id, text in DOCUMENTS.items()]
    write_rows(folder / "corpus/train.jsonl", [dict(row) for row in long])
    command = ("evaluate", *systems, "--retrieval", folder, "--split", "validation", "--output", tmp_path / "out")
    code, out, err = ctxsim(*command)  # words are counted in the documents, as there is nothing else
    assert code == 0, err
    assert "animals (nDCG@10)" in out and "MRR@10" in out and "normalised discounted cumulative gain" in out.lower()
    assert "bm25 on animals: BM25 with k1 1.5, b 0.75; words in lower case, neither stemmed nor stopped" in out
    for name, tokens in (("s", 40), ("st", 40), ("hf", 40)):
        assert f"{name} on animals: reads {tokens} tokens of a text; 4 of 4 documents are longer, and cut" in out
    record = json.loads((tmp_path / "out/results.json").read_text())
    rows = {row["system"]: row for row in record["results"]}
    assert rows["bm25"]["pairs"] == 2 and rows["bm25"]["ndcg_at_10"]["value"] > 0.8
    assert rows["s"]["remarks"] and "remarks" not in rows["tfidf"]
    assert rows["s"]["ndcg_at_10"] == rows["st"]["ndcg_at_10"] == rows["hf"]["ndcg_at_10"]
    assert "nDCG@10" in (tmp_path / "out/results.md").read_text()
    assert (tmp_path / "out/results.png").read_bytes().startswith(b"\x89PNG")


def test_beside_pairs_and_in_python(ctxsim: Run, folder: Path, data_root: Path, tmp_path: Path) -> None:
    command = ("evaluate", "tfidf", "--tasks", "stsb", "--split", "validation", "--data-root", data_root)
    code, out, err = ctxsim(*command, "--retrieval", folder, "--output", tmp_path / "out")
    assert code == 0 and "animals (nDCG@10)" in out and "Spearman" in out, err
    assert np.load(tmp_path / "out/scores.npy").shape == (1, 12)  # of the pairs
    (result,) = evaluate_similarity(Bm25(COUNTS), split="validation", retrieval=folder)
    assert result.main.value > 0.8 and not result.scores
    code, _, err = ctxsim(*command, "--baseline", "rrf:tfidf+bm25")
    assert code == 2 and "judged by --retrieval only" in err and err.count("\n") == 1


def test_the_layout_of_beir(tmp_path: Path) -> None:
    folder = tmp_path / "beir"
    rows: list[dict[str, object]] = [{"_id": id, "title": f"On {id}", "text": text} for id, text in DOCUMENTS.items()]
    write_rows(folder / "corpus.jsonl", rows)
    write_rows(folder / "queries.jsonl", [{"_id": row["id"], "text": row["query"]} for row in QUERIES])
    (folder / "qrels").mkdir()
    (folder / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\n1\td1\t2\n1\td2\t1\n1\td3\t0\n2\td3\t1\n")
    task = load_retrieval(f"mine={folder}")
    assert (task.task, task.split, task.queries) == ("mine", "test", ["cat cat sleeping", "a cold red sea"])
    assert task.documents[0] == "On d1 The cat sleeps. A cat, a cat!"
    assert task.grades[0] == {"d1": 2, "d2": 1, "d3": 0}
    with pytest.raises(UserError, match=r"expected 'dev' in .*qrels"):
        load_retrieval(str(folder), "dev")


def test_a_list_of_ids_is_of_grade_1(folder: Path) -> None:
    (folder / "queries/validation.jsonl").unlink()
    write_rows(folder / "queries/validation.jsonl", [{"id": 7, "text": "cat", "relevant": ["d1", "d2"]}])
    assert load_retrieval(str(folder), "validation").grades == [{"d1": 1, "d2": 1}]


@pytest.mark.parametrize(
    ("corpus", "queries", "message"),
    [
        ({"id": 1}, None, "a column 'text' in .*corpus', found only id"),
        ({"text": "a"}, None, "a column 'id' or '_id' in .*corpus', found only text"),
        (None, {"id": 1, "relevant": {"d1": 1}}, "a column 'query' or 'text' in .*queries'"),
        (None, {"id": 1, "query": "a"}, "a column 'relevant' in .*queries'"),
        (None, {"id": 1, "query": "a", "relevant": {"gone": 1}}, "expected queries with relevant documents"),
        (None, {"id": 1, "query": "a", "relevant": {"d1": "much"}}, "a number as the grade of a document, got 'much'"),
        (None, {"id": 1, "query": "a", "relevant": 3}, "{id: grade} or a list of ids in 'relevant', got '3'"),
    ],
)
def test_rows_that_are_wrong(
    folder: Path, corpus: dict[str, object] | None, queries: dict[str, object] | None, message: str
) -> None:
    if corpus:
        write_rows(folder / "corpus/train.jsonl", [corpus])
    if queries:
        write_rows(folder / "queries/validation.jsonl", [queries])
    with pytest.raises(UserError, match=message):
        load_retrieval(str(folder), "validation")


def test_folders_that_are_wrong(ctxsim: Run, folder: Path, tmp_path: Path) -> None:
    write_rows(folder / "corpus/train.jsonl", [{"id": 1, "text": "a"}, {"id": 1, "text": "b"}])
    for where, message in (
        (folder, "the id '1' is that of another row"),
        (tmp_path / "absent", "expected a folder with corpus and queries"),
        (tmp_path, "expected 'corpus' in"),
    ):
        code, out, err = ctxsim("evaluate", "bm25", "--retrieval", where, "--split", "validation")
        assert (code, out, err.count("\n")) == (2, "", 1) and message in err
    for spelling in ("rrf:bm25", "rrf:bm25+rrf:bm25+tfidf"):
        code, _, err = ctxsim("evaluate", spelling, "--retrieval", folder)
        assert code == 2 and "expected rrf:SYSTEM+SYSTEM" in err and err.count("\n") == 1


def test_what_is_said_of_a_ranking() -> None:
    scorer = PairScorer(lambda first, second: np.zeros(len(first)))
    assert "ranks only the first 100 documents of BM25" in describe_ranking(scorer, ["a"])
    assert describe_ranking(COUNTS, ["a"]) == ""


def test_bm25_on_real_data(shared_data: Path) -> None:
    if not (shared_data / "domains").is_dir():
        pytest.skip("needs ../shared/data/domains, which is not part of this project")
    cranfield = shared_data / "domains/cranfield"
    (result,) = evaluate_similarity(Bm25(COUNTS), split="validation", retrieval=cranfield)
    assert (result.task, result.pairs) == ("cranfield", 113)
    assert 0.28 < result.main.low < result.main.value < result.main.high < 0.45
