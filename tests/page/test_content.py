"""What the page shows, without a browser: explanations, hits with their neighbours, duplicates, and its limits."""

import re
from pathlib import Path

import pytest
from tiny_surrogate import save_tiny

from ctxsim_hf import OriginSimilarity, read_chunks
from ctxsim_hf.page.content import MAX_CHARS, Comparison, Documents, open_documents
from ctxsim_hf.runtime.errors import UserError


@pytest.fixture(scope="module")
def comparison(planted: Path) -> Comparison:
    return Comparison(OriginSimilarity.from_pretrained(planted / "origin", num_contexts=20))


@pytest.fixture(scope="module")
def documents(planted: Path, tmp_path_factory: pytest.TempPathFactory) -> Documents:
    folder = tmp_path_factory.mktemp("page")
    surrogate = str(save_tiny(folder / "surrogate"))
    open_documents(str(planted / "chunks"), surrogate, folder / "search")
    return open_documents(str(planted / "chunks"), surrogate, folder / "search")  # as it is opened the second time


def test_two_sentences_are_explained(comparison: Comparison) -> None:
    first, second = comparison.examples[0]
    expected = comparison.origin.explain(first, second)
    assert f"Similarity {expected.similarity:.3f}" in comparison.explain(f" {first}\n", second)


def test_examples_are_different_sentences_of_the_corpus(comparison: Comparison) -> None:
    sentences = [sentence for pair in comparison.examples for sentence in pair]
    assert len(comparison.examples) == 5 and len(set(sentences)) == 10
    assert set(sentences) <= set(comparison.origin.background)


@pytest.mark.parametrize("text", ["", "  \n", "x" * (MAX_CHARS + 1)])
def test_limits_hold_for_whoever_asks(comparison: Comparison, documents: Documents, text: str) -> None:
    """The browser limits what is typed, but requests need not come from the page."""
    with pytest.raises(UserError, match="second sentence"):
        comparison.explain("A cat sat there.", text)
    with pytest.raises(UserError, match=r"(?i)what to look for"):
        documents.search(text)


def test_hits_stand_where_they_are_in_the_documents(documents: Documents, planted: Path) -> None:
    chunk = next(row for row in read_chunks(planted / "chunks") if len(row["sentences"]) >= 3)
    sentence = chunk["sentences"][1]
    shown = documents.search(sentence, top_k=1)
    assert re.sub("</?mark>", "", shown).count(f"<b>{sentence}</b>") == 1 and chunk["doc_id"] in shown
    place = documents.place(documents.index.search([sentence], 1)[0][0].place)
    assert (place.before, place.after) == (chunk["sentences"][0], chunk["sentences"][2])


@pytest.mark.parametrize(("query", "marked"), [("is the cat there", {"there"}), ("a cat", {"a", "cat"})])
def test_short_words_are_marked_only_where_there_are_no_longer_ones(
    documents: Documents, query: str, marked: set[str]
) -> None:
    shown = documents.search(query, top_k=len(documents.index))
    assert {word.lower() for word in re.findall("<mark>(.*?)</mark>", shown)} <= marked
    assert "<mark>" in shown


def test_duplicates_are_those_of_the_index(documents: Documents) -> None:
    pairs = documents.duplicates.pairs
    scores = documents.index.encoder.similarity([p.sentence1 for p in pairs], [p.sentence2 for p in pairs])
    assert pairs and [pair.score for pair in pairs] == pytest.approx(scores.tolist(), abs=1e-5)
    assert documents.duplicates_html().count("<tr>") == len(pairs) + 1
    assert "occur more than once" not in documents.duplicates.summary


def test_a_page_is_built(comparison: Comparison, documents: Documents) -> None:
    pytest.importorskip("gradio", reason="make test-app installs gradio")
    from ctxsim_hf.page.build import build_page

    pages = build_page("Mine", comparison, documents), build_page("Mine", comparison)
    full, small = ({block.get_config().get("label") for block in page.blocks.values()} for page in pages)
    assert {"Compare", "Search", "Duplicates", "First sentence"} <= full and "Search" not in small


def test_without_gradio(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from ctxsim_hf.page.build import import_gradio

    monkeypatch.setitem(sys.modules, "gradio", None)
    with pytest.raises(UserError, match=r"pip install 'ctxsim-hf\[app\]'"):
        import_gradio()
