"""Documents in, documents out: search by sentences and words, deletion, compaction, interruption, bad files."""

import gzip
import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tiny_surrogate import mixed_sentences

from ctxsim_hf import DocumentIndex, SearchDocument, SentenceEncoder
from ctxsim_hf.evaluation.bm25 import bm25_vectors
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.surrogate import document_contents, document_index
from ctxsim_hf.surrogate.document_file import DocumentFile

Run = Callable[..., tuple[int, str, str]]


def documents(number: int = 30) -> list[SearchDocument]:
    lines = [line.replace(".", "").strip() + "." for line in mixed_sentences(3 * number)]
    texts = ["\n\n".join(lines[3 * n : 3 * n + 3]) for n in range(number)]
    return [SearchDocument(f"d{n}", f"Title {n}" if n % 2 else "", text) for n, text in enumerate(texts)]


def hits(index: DocumentIndex, queries: list[str], fuse: bool = True) -> list[list[tuple[float, str, str]]]:
    found = index.search(queries, 5, fuse)
    return [[(round(hit.similarity, 6), hit.id, hit.sentence) for hit in row] for row in found]


@pytest.fixture(scope="module")
def stored(encoder: SentenceEncoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of all documents, added in two goes."""
    folder = tmp_path_factory.mktemp("documents") / "index"
    index = DocumentIndex(folder, encoder)
    index.add(documents()[:20])
    index.add(documents()[20:])
    return folder


def test_an_index_that_another_run_has_just_begun_is_not_damaged(
    encoder: SentenceEncoder, stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other run writes index.json first, then data, whatever this one has looked at already."""
    look = document_contents.data_folders

    def look_while_it_is_written(folder: Path) -> list[Path]:
        shutil.copytree(stored, folder)
        return look(folder)

    monkeypatch.setattr(document_contents, "data_folders", look_while_it_is_written)
    assert len(DocumentIndex(tmp_path / "index", encoder)) == 30


def test_the_best_sentence_decides_without_words(encoder: SentenceEncoder, stored: Path) -> None:
    index, query = DocumentIndex(stored), documents()[7].text.split("\n\n")[1]
    assert len(index) == 30
    sentences = [(document.id, s) for document in documents() for s in document.sentences("en")]
    vectors = np.asarray(encoder.encode([query, *(s for _, s in sentences)], normalize_embeddings=True))
    cosines = vectors[1:] @ vectors[0]
    best: dict[str, tuple[float, str]] = {}
    for (id, sentence), cosine in zip(sentences, cosines.tolist(), strict=True):
        best[id] = max(best.get(id, (-2.0, "")), (cosine, sentence))
    expected = sorted(best, key=lambda id: -best[id][0])[:5]
    (found,) = index.search([query], 5, fuse=False)
    assert [hit.id for hit in found] == expected and found[0].id == "d7" and found[0].title == "Title 7"
    np.testing.assert_allclose([hit.similarity for hit in found], [best[id][0] for id in expected], atol=1e-5)
    assert [hit.sentence for hit in found] == [best[id][1] for id in expected]


def test_words_are_those_of_bm25(stored: Path) -> None:
    index, query = DocumentIndex(stored), documents()[3].text
    texts = [" ".join(document.sentences("en")) for document in documents()]
    asked, held = bm25_vectors([query], texts)
    np.testing.assert_allclose(index._words.scores(query), (asked @ held.T).toarray()[0], rtol=1e-9)


def test_words_find_what_vectors_miss(encoder: SentenceEncoder, tmp_path: Path) -> None:
    index = DocumentIndex(tmp_path / "index", encoder)
    index.add([*documents(), SearchDocument("rare", "", "zyzzyva qwertz.")])
    (found,) = index.search(["qwertz"], 3)
    assert "rare" in [hit.id for hit in found]


def test_deleting_and_compacting_equal_building(encoder: SentenceEncoder, stored: Path, tmp_path: Path) -> None:
    folder, gone = Path(shutil.copytree(stored, tmp_path / "index")), ["d0", "d7", "d25"]
    less = DocumentIndex(tmp_path / "less", encoder)
    less.add([document for document in documents() if document.id not in gone])
    queries = ["some words", *(document.text.split("\n\n")[0] for document in documents()[::6])]
    index, reader = DocumentIndex(folder), DocumentIndex(folder)
    before = hits(reader, queries)
    index.delete(gone)
    for fuse in (True, False):
        assert hits(index, queries, fuse) == hits(less, queries, fuse)
    index.compact()
    assert hits(index, queries) == hits(less, queries) == hits(DocumentIndex(folder), queries)
    assert hits(reader, queries) == before, "who opened it before goes on"
    index.add([documents()[7]])
    assert len(index) == 28 and "d7" in [hit.id for hit in index.search([documents()[7].text], 3)[0]]


@pytest.mark.parametrize("moment", ["write_digests", "replace"])
def test_an_interrupted_add(
    encoder: SentenceEncoder, stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    folder = tmp_path / "index"
    DocumentIndex(folder, encoder).add(documents()[:20])

    def interrupt(*arguments: object, **changes: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(document_index, moment, interrupt)
        DocumentIndex(folder).add(documents()[20:])
    queries = [document.text.split("\n\n")[0] for document in documents()[::5]]
    assert len(DocumentIndex(folder)) == 20 and len(hits(DocumentIndex(folder), queries)[0]) == 5
    DocumentIndex(folder).add(documents()[20:])
    assert hits(DocumentIndex(folder), queries) == hits(DocumentIndex(stored), queries)
    assert (folder / "index.json").read_bytes() == (stored / "index.json").read_bytes()


def test_files_of_all_kinds(tmp_path: Path) -> None:
    rows = [{"id": 1, "title": "One", "text": "A cat."}, {"text": "A dog."}, {"id": "x", "title": None, "text": ""}]
    text = "\n".join(json.dumps(row) for row in rows)
    (tmp_path / "a.jsonl").write_text(text + "\n\n")
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    expected = [SearchDocument("1", "One", "A cat."), SearchDocument("a/2", "", "A dog."), SearchDocument("x", "", "")]
    assert (
        list(DocumentFile(str(tmp_path / "a.jsonl"))) == list(DocumentFile(str(tmp_path / "a.jsonl.gz"))) == expected
    )
    pq.write_table(pa.table({"id": [5], "title": ["T"], "body": ["A cat."]}), tmp_path / "a.parquet")
    assert list(DocumentFile(str(tmp_path / "a.parquet"), "body")) == [SearchDocument("5", "T", "A cat.")]
    assert SearchDocument("1", "One", "A cat. A dog.").sentences("en") == ["One", "A cat.", "A dog."]


def test_command(ctxsim: Run, folder: Path, tmp_path: Path) -> None:
    index, file = tmp_path / "index", tmp_path / "texts.jsonl"
    file.write_text("".join(json.dumps(document._asdict()) + "\n" for document in documents(10)))
    words = ("search", "--index", index)
    assert ctxsim(*words, "--surrogate", folder, "--add", file) == (
        0, f"10 documents added to {index}, which holds 10\n", ""
    )  # fmt: skip
    query = documents(10)[3].text.split("\n\n")[0]
    code, out, _ = ctxsim(*words, "--top-k", 2, query)
    assert code == 0 and out.splitlines()[0] == f"1.0000  d3  Title 3: {query}" and len(out.splitlines()) == 2
    (tmp_path / "queries.txt").write_text(f"{query}\nother words\n")
    code, out, _ = ctxsim(*words, "--top-k", 3, "--no-fuse", "--queries", tmp_path / "queries.txt")
    answers = [json.loads(line) for line in out.splitlines()]
    assert [answer["query"] for answer in answers] == [query, "other words"] and len(answers[1]["hits"]) == 3
    assert answers[0]["hits"][0] | {"similarity": 1} == {
        "similarity": 1,
        "id": "d3",
        "title": "Title 3",
        "sentence": query,
    }
    code, out, _ = ctxsim(*words, "--delete", "d3", "d4")
    assert code == 0 and "2 documents deleted" in out
    code, out, _ = ctxsim(*words, "--compact", "--queries", tmp_path / "queries.txt")
    assert code == 0 and "is compact" in out and '"d3"' not in out


def test_many_threads_get_what_one_gets(encoder: SentenceEncoder, stored: Path) -> None:
    queries = [sentence for document in documents()[::3] for sentence in document.sentences("en")[:2]]
    index = DocumentIndex(stored, encoder)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda query: index.search([query], 5)[0], queries))
    for one, other in zip(found, DocumentIndex(stored, encoder).search(queries, 5), strict=True):
        assert [hit[1:] for hit in one] == [hit[1:] for hit in other]
        np.testing.assert_allclose([hit.similarity for hit in one], [hit.similarity for hit in other], atol=1e-5)


def test_what_cannot_be_done_is_refused(ctxsim: Run, folder: Path, stored: Path, tmp_path: Path) -> None:
    bad = {
        "no.jsonl": ('{"id": 1, "body": "x"}\n', "line 1: expected a column 'text' with the text .*, found body, id"),
        "null.jsonl": ('{"id": 1, "text": null}\n', "line 1: expected text in column 'text', found None"),
        "not.jsonl": ("plain words\n", "line 1: expected a JSON object"),
        "twice.jsonl": ('{"id": 1, "text": "a"}\n{"id": 1, "text": "b"}\n', "the id '1' is given twice"),
        "empty.jsonl": ("", "expected documents to add, but there are none"),
        "lines.txt": ('Some words.\n{"id": 1, "text": "a"}\n', "line 2: expected plain text, found a JSON object"),
        "no.parquet": ("no parquet", "expected a parquet file"),
    }
    for name, (text, message) in bad.items():
        (tmp_path / name).write_text(text)
        code, _, err = ctxsim(
            "search", "--index", tmp_path / f"i-{name}", "--surrogate", folder, "--add", tmp_path / name
        )
        assert code == 2 and err.count("\n") == 1, err
        with pytest.raises(UserError, match=message):
            raise UserError(err)
    (tmp_path / "lines.txt").write_text("Some words.\n")
    (tmp_path / "known.jsonl").write_text('{"id": "d1", "text": "a"}\n')
    for words, message in [
        (("--add", tmp_path / "lines.txt"), "holds documents; add a file whose name ends in .jsonl or .parquet"),
        (("--add", tmp_path / "known.jsonl"), "the document with the id 'd1' is in .* already; delete it first"),
        (("--delete", "nonsense"), "has the id 'nonsense'; nothing was deleted"),
        (("--delete", *(f"d{n}" for n in range(30))), "these are all documents"),
    ]:
        code, _, err = ctxsim("search", "--index", stored, *words)
        with pytest.raises(UserError, match=message):
            raise UserError(err)
    ctxsim("search", "--index", tmp_path / "s", "--surrogate", folder, "--add", tmp_path / "lines.txt")
    code, _, err = ctxsim("search", "--index", tmp_path / "s", "--add", tmp_path / "known.jsonl")
    assert code == 2 and "holds sentences; choose another --index for documents" in err
    code, _, err = ctxsim("search", "--index", tmp_path / "s", "--delete", "a")
    assert code == 2 and "holds sentences without ids; only documents can be deleted" in err
