"""Search against the whole matrix of similarities, and what becomes of an index that is interrupted or misused."""

import io
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tiny_surrogate import mixed_sentences

from ctxsim_hf import SentenceEncoder
from ctxsim_hf.encoder import sentence_encoder
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import seal
from ctxsim_hf.surrogate.search_index import SearchIndex

Run = Callable[..., tuple[int, str, str]]
SENTENCES = [*mixed_sentences(120), "", "caf\u00e9 \U0001f600", "two\nlines"]


@pytest.fixture(scope="module")
def stored(encoder: SentenceEncoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of all sentences, added in two goes."""
    folder = tmp_path_factory.mktemp("search") / "index"
    index = SearchIndex(folder, encoder)
    index.add(SENTENCES[:50])
    index.add(SENTENCES[50:])
    return folder


def test_search_is_exact(encoder: SentenceEncoder, stored: Path) -> None:
    index, queries = SearchIndex(stored), ["some words", *SENTENCES[:40]]  # finds its surrogate by itself
    assert len(index) == len(SENTENCES)
    assert [index.sentence(place) for place in range(len(index))] == SENTENCES
    first, second = (np.asarray(encoder.encode(side, normalize_embeddings=True)) for side in (queries, SENTENCES))
    matrix = first @ second.T
    for row, hits in zip(matrix, index.search(queries, 7), strict=True):
        np.testing.assert_allclose([hit.similarity for hit in hits], np.sort(row)[::-1][:7], atol=1e-5)
        np.testing.assert_allclose([row[hit.place] for hit in hits], [hit.similarity for hit in hits], atol=1e-5)
        assert [hit.sentence for hit in hits] == [SENTENCES[hit.place] for hit in hits]
    assert index.search([SENTENCES[3]], 1)[0][0].sentence == SENTENCES[3]
    assert len(index.search(["all"], 1000)[0]) == len(SENTENCES)
    assert index.search([]) == []


def test_an_index_takes_no_memory(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors are read where they lie: faiss gets the mapped file itself."""
    import faiss

    seen: list[np.ndarray] = []
    knn = faiss.knn
    monkeypatch.setattr(faiss, "knn", lambda *args, **options: (seen.append(args[1]), knn(*args, **options))[1])
    SearchIndex(stored).search(["words"])
    assert isinstance(seen[0], np.memmap) and not seen[0].flags.writeable


class Interrupted(list[str]):
    def __iter__(self) -> Iterator[str]:
        yield from super().__iter__()
        raise KeyboardInterrupt


def test_an_interrupted_add(
    encoder: SentenceEncoder, stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was there stays, and the same add goes on with the same bytes in the end; another add starts anew."""
    monkeypatch.setattr(sentence_encoder, "SENTENCES_PER_PART", 10)
    old, new, whole, other = SENTENCES[:50], SENTENCES[50:], tmp_path / "whole", tmp_path / "index"
    for folder in (whole, other):
        SearchIndex(folder, encoder).add(old)
    SearchIndex(whole, encoder).add(new)
    with pytest.raises(KeyboardInterrupt):
        SearchIndex(other, encoder).add(Interrupted(new[:25]))
    assert len(SearchIndex(other)) == 50 and SearchIndex(other).search([old[0]])[0][0].sentence == old[0]
    assert json.loads((other / "adding.json").read_text())["rows"] == 20
    with (other / "vectors.f32").open("ab") as file:
        file.write(b"half a row")  # as a kill would leave it
    shutil.copytree(other, tmp_path / "third")
    SearchIndex(other, encoder).add(new)
    for name in ("index.json", "vectors.f32", "sentences.utf8", "ends.i64"):
        assert (other / name).read_bytes() == (whole / name).read_bytes(), name
    assert not (other / "adding.json").exists()
    third = SearchIndex(tmp_path / "third")
    third.add(["something else"])
    assert len(third) == 51 and third.sentence(50) == "something else" and third.sentence(49) == old[49]


@pytest.mark.parametrize("name", ["index.json", "vectors.f32", "sentences.utf8", "ends.i64"])
@pytest.mark.parametrize("damage", ["flip", "cut", "delete"])
def test_a_damaged_index_is_refused_and_left_alone(
    encoder: SentenceEncoder, stored: Path, tmp_path: Path, name: str, damage: str
) -> None:
    folder = Path(shutil.copytree(stored, tmp_path / "index"))
    path = folder / name
    whole = path.read_bytes()
    half = len(whole) // 2
    if damage == "delete":
        path.unlink()
    else:
        path.write_bytes(whole[:half] + (bytes([whole[half] ^ 1]) + whole[half + 1 :] if damage == "flip" else b""))
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for _ in range(2):
        with pytest.raises(UserError, match="remove the index and add its sentences again"):
            SearchIndex(folder, encoder).add(["more"])
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    path.write_bytes(whole)
    assert len(SearchIndex(folder)) == len(SENTENCES)


def test_an_unfinished_add_that_was_damaged_begins_again(
    encoder: SentenceEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sentence_encoder, "SENTENCES_PER_PART", 10)
    for folder in (tmp_path / "whole", tmp_path / "index"):
        SearchIndex(folder, encoder).add(SENTENCES[:30])
    SearchIndex(tmp_path / "whole", encoder).add(SENTENCES[30:])
    with pytest.raises(KeyboardInterrupt):
        SearchIndex(tmp_path / "index", encoder).add(Interrupted(SENTENCES[30:55]))
    with (tmp_path / "index/vectors.f32").open("r+b") as file:
        file.seek(-3, 2)
        file.write(b"x")
    SearchIndex(tmp_path / "index", encoder).add(SENTENCES[30:])
    for name in ("index.json", "vectors.f32", "sentences.utf8", "ends.i64"):
        assert (tmp_path / "index" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


def test_wrong_dimension(stored: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"expected queries of 16 numbers, got the shape \(1, 8\)"):
        SearchIndex(stored).search_vectors(np.ones((1, 8), np.float32))
    shutil.copytree(stored, tmp_path / "index")
    about = json.loads((stored / "index.json").read_text()) | {"vector_size": 8}
    del about["xxh3_128"]
    (tmp_path / "index/index.json").write_text(json.dumps(seal(about)))
    with pytest.raises(UserError, match=r"was made by the surrogate .*, whose vectors have 8 numbers, not 16"):
        SearchIndex(tmp_path / "index")


def test_wrong_use(encoder: SentenceEncoder, stored: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    index = SearchIndex(stored)
    with pytest.raises(UserError, match="top_k must be at least 1, got 0"):
        index.search(["a"], 0)
    with pytest.raises(UserError, match="search takes a list of queries; got a string"):
        index.search("a")  # type: ignore[arg-type]
    in_memory = SentenceEncoder(encoder.model, encoder.tokenizer, encoder.max_tokens)
    with pytest.raises(UserError, match="an index needs an encoder opened by from_pretrained"):
        SearchIndex(tmp_path / "index", in_memory)
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(UserError, match=r"pip install 'ctxsim-hf\[search\]'"):
        index.search(["a"])


def test_command(ctxsim: Run, folder: Path, tmp_path: Path) -> None:
    index, text = tmp_path / "index", tmp_path / "sentences.txt"
    text.write_text("\n".join(mixed_sentences(20)) + "\n")
    code, _, err = ctxsim("search", "--index", index, "some words")
    assert code == 2 and "nothing is indexed in" in err and err.count("\n") == 1
    assert ctxsim("search", "--index", index, "--surrogate", folder, "--add", text) == (
        0, f"20 sentences added to {index}, which holds 20\n", ""
    )  # fmt: skip
    code, out, _ = ctxsim("search", "--index", index, "--top-k", 3, mixed_sentences(20)[4])
    assert code == 0 and out.splitlines()[0] == f"1.0000  {mixed_sentences(20)[4]}" and len(out.splitlines()) == 3
    code, _, err = ctxsim("search", "--index", index, "two", "queries")
    assert code == 2 and "expected one query in quotes, or something to add; got 2 queries" in err


def test_chunks_are_indexed_once_each(ctxsim: Run, folder: Path, tmp_path: Path) -> None:
    paragraph = " ".join(f"This is number {number} of some sentences." for number in range(5))
    (tmp_path / "text.txt").write_text(f"{paragraph}\n\n{paragraph}\n\nAnother one ends it.\n")
    ctxsim("chunk", "--corpus", tmp_path / "text.txt", "--output", tmp_path / "chunks")
    words = ("search", "--index", tmp_path / "index", "--surrogate", folder, "--chunks", tmp_path / "chunks")
    code, out, err = ctxsim(*words, "--top-k", 1, "Another one ends it.")
    assert code == 0 and "6 sentences added" in out and out.endswith("1.0000  Another one ends it.\n"), out + err


def test_documents_by_another_name_are_no_sentences(
    ctxsim: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, words = '{"id": 1, "text": "A cat."}\n', ("search", "--surrogate", folder, "--index", tmp_path / "index")
    for name in ("rows.txt", "rows.jsonl"):
        (tmp_path / name).write_text(row)
    for name in (tmp_path / "rows.txt", "-"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(row.encode())))
        code, _, err = ctxsim(*words, "--add", name)
        assert code == 2 and err == (
            f"ctxsim search: '{name}', line 1: expected plain text, found a JSON object; pass text, or give documents "
            "in a file whose name ends in .jsonl\n"
        )
    code, out, err = ctxsim(*words, "--add", tmp_path / "rows.jsonl")
    assert code == 0 and "1 documents added" in out, err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"A cat.\nA dog.\n")))
    code, out, _ = ctxsim(*words[:3], "--index", tmp_path / "sentences", "--add", "-", "--top-k", 1, "A cat.")
    assert code == 0 and "2 sentences added" in out and out.endswith("1.0000  A cat.\n")
