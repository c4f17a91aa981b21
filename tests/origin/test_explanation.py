"""An explanation as text and as HTML, the words that matter in it, and whether its effects are true."""

import re
from pathlib import Path

import numpy as np
import pytest

from ctxsim_hf import OriginSimilarity
from ctxsim_hf.context_models.contexts import Contexts
from ctxsim_hf.context_models.score_weights import ScoreWeights
from ctxsim_hf.encoder.thresholds import Thresholds
from ctxsim_hf.origin.contexts_signal import ContextComparison, JudgedContexts
from ctxsim_hf.origin.explanation import ContextFit, Explanation
from ctxsim_hf.origin.faithfulness import context_effects, measure_faithfulness
from ctxsim_hf.origin.fit_score import ContextScorer
from ctxsim_hf.origin.settings import OriginSettings
from ctxsim_hf.origin.suggested_words import SuggestedWords
from ctxsim_hf.origin.telling_words import shared_words, telling_words
from ctxsim_hf.text.chunks import Context
from ctxsim_hf.text.words import words

NASTY = '<img src=x onerror=alert(1)> & "quotes" </div>'


def comparison(compare_by: str) -> ContextComparison:
    """Scores of two sentences and of a background whose contexts repeat each other."""
    draw = np.random.default_rng(0)
    topics = draw.normal(size=(62, 4)) @ draw.normal(size=(4, 40)) + draw.normal(size=(62, 40))
    topics[1] += topics[0]
    settings = OriginSettings(compare_by=compare_by, weights=ScoreWeights(discriminative=0, sentence=0, right=0))
    judged = [
        JudgedContexts(np.arange(40)[part], [], lambda _, part=part: {"left": topics[2:, part]})
        for part in (slice(0, 20), slice(20, 40))
    ]
    return ContextComparison(settings, np.arange(40), 20, {"left": topics[:2]}, judged)


@pytest.mark.parametrize("compare_by", ["cosine", "centered", "zscore"])
def test_effects_are_exact_where_contexts_do_not_mix(compare_by: str) -> None:
    pair = comparison(compare_by)
    without = [pair.similarity_without(place) for place in range(40)]
    np.testing.assert_allclose(context_effects(pair.vectors), pair.similarity - np.array(without), atol=1e-12)
    found = measure_faithfulness(pair)
    assert found is not None and found.contexts == 32
    assert found.correlation == pytest.approx(1) and found.max_error < 1e-12


def test_effects_with_whitening_are_measured() -> None:
    pair = comparison("whitened")
    found = measure_faithfulness(pair)
    assert found is not None and 0.3 < found.correlation < 1 and 0 < found.max_error < 0.1
    assert f"correlate {found.correlation:.2f}" in str(found)


class WordCounting:
    """A context model for which a sentence fits a context if they share words."""

    terms, width, is_slow, stores = ("left",), 1, False, False

    def prepare_sentences(self, sentences: list[str]) -> list[set[str]]:
        return [set(words(sentence)) for sentence in sentences]

    def prepare_contexts(self, contexts: Contexts) -> list[set[str]]:
        return [set(words(" ".join([*left, *right]))) for left, right in contexts.texts()]

    def score(self, term: str, sentences: list[set[str]], contexts: list[set[str]]) -> np.ndarray:
        return np.array([[float(len(one & other)) for other in contexts] for one in sentences])


CONTEXT = Context("chunk", 1, ("The CAT saw a dog.",), "taken out", ("A violin played, the cat slept.",))
BACKGROUND = ["The dog slept.", "A man saw the sea.", "Birds sing a song.", "The cat ran."] * 3


def test_words_that_matter_are_those_without_which_the_fit_falls() -> None:
    scorer = ContextScorer({"counting": WordCounting()}, ScoreWeights(discriminative=0, sentence=0, right=0))  # type: ignore[dict-item]
    sentences = ["Some violin.", "Every violin and cat."]
    (both,) = telling_words(sentences, [CONTEXT], (0.5, 0.5), scorer, BACKGROUND)
    assert both == ("violin",)
    (second,) = telling_words(sentences, [CONTEXT], (-1, 1), scorer, BACKGROUND)
    assert second[0] == "cat" and "violin" not in second
    assert telling_words(sentences, [], (0.5, 0.5), scorer, BACKGROUND) == []
    assert shared_words(sentences, [CONTEXT], []) == [("cat", "violin")]
    assert shared_words(sentences, [CONTEXT], ["A cat.", "A dog.", "A cat and a dog."]) == [("violin",)]


@pytest.fixture
def explanation() -> Explanation:
    fit = ContextFit(
        Context(NASTY, 1, (f"Before {NASTY}",), "out", ("The cat.",)),
        doc_id=NASTY,
        source="source",
        found_for=(1,),
        fit=(2.0, -1.0),
        terms={"left": (-1.0, -2.0)},
        effect=0.0123,
        words=("cat", "img"),
    )
    return Explanation(
        f"A cat {NASTY}",
        f"A dog {NASTY}",
        similarity=0.42,
        spread=0.05,
        signals={"contexts": 0.6, NASTY: -0.1},
        shares={"contexts": 0.7, NASTY: 0.3},
        words=SuggestedWords([NASTY], ["whiskers"], []),
        meaning="above 97 % of random pairs of sentences",
        directional=(0.5, 0.7),
        num_contexts=(20, 20),
        both=[fit],
    )


def test_everything_is_escaped(explanation: Explanation, tmp_path: Path) -> None:
    explanation.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    for html in (page, explanation._repr_html_()):
        assert "<img" not in html and "</div> &" not in html and "&lt;" in html
        assert not re.search(r"https?://|<script|<link|src=\"|@import|url\(", html), "nothing from elsewhere"
        assert html.count("<div") == html.count("</div>")


def test_text_and_html_state_the_same_facts(explanation: Explanation) -> None:
    text, html = str(explanation), explanation._repr_html_()
    for fact in (
        "0.420",
        "above 97 % of random pairs",
        "0.600",
        "70%",
        "whiskers",
        "+2.0",
        "-1.0",
        "+0.0123",
        "0.050",
    ):
        assert fact in text and fact in html, fact
    assert "marked words: cat, img" in text and "The <mark>cat</mark>." in html
    assert '<mark class="first">cat</mark>' in html and '<mark class="second">dog</mark>' in html
    assert html.count("no context") == 2 == text.count("no context")


def test_an_origin_knows_what_its_scores_mean(planted: Path) -> None:
    """Indexing measured pairs of the background; other settings give other scores."""
    origin = OriginSimilarity.from_pretrained(planted / "origin")
    stored = Thresholds.load(planted / "origin")
    assert stored is not None and stored.adjacent is None and stored.settings == origin.settings.to_json()
    pairs = origin.background[:40:2], origin.background[1:40:2]
    shares = [stored.shares(score)[0] for score in origin.similarity(*pairs)]
    assert 0.2 < float(np.mean(shares)) < 0.8, "background pairs are ordinary among background pairs"
    sentence = origin.background[0]
    shown = origin.explain(sentence, sentence)
    assert shown.meaning == f"above all {stored.pairs} random pairs of sentences" and shown.meaning in str(shown)
    assert shown.faithfulness is not None and shown.faithfulness.contexts == 32
    assert all(fit.effect is not None for fit in shown.both)
    other = OriginSimilarity.from_pretrained(planted / "origin", num_contexts=20)
    assert other.explain(sentence, sentence).meaning is None


def test_an_origin_says_what_it_is(planted: Path) -> None:
    shown = repr(OriginSimilarity.from_pretrained(planted / "origin", signals={"contexts": 1, "words": 0.5}))
    for fact in (str(planted / "origin"), "contexts 1, words 0.5", "for each sentence", "whitened", "light_generator"):
        assert fact in shown, fact


def test_command_writes_a_page(ctxsim, planted: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    flags = ("similarity", "--origin", planted / "origin", "--num-contexts", 20, "--html", tmp_path / "why.html")
    code, out, err = ctxsim(*flags, "A cat sat there.", "There the cat sat.")
    assert code == 0, err
    assert f"Similarity {float(out):.3f}" in (tmp_path / "why.html").read_text("utf-8")
