"""Origin end to end on a corpus whose truth is known."""

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from planted import PlantedCorpus, Probe

from ctxsim_hf.context_models.score_weights import ScoreWeights
from ctxsim_hf.origin.comparison import COMPARISONS
from ctxsim_hf.origin.similarity import OriginSimilarity
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.letters import LetterCosine
from ctxsim_hf.text.lexical import TfidfCosine

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def probes() -> list[Probe]:
    return PlantedCorpus().probes(100)


@pytest.fixture(scope="module")
def origin(planted: Path) -> OriginSimilarity:
    return OriginSimilarity.from_pretrained(planted / "origin", num_contexts=50)


def test_planted_paraphrases(planted: Path, origin: OriginSimilarity, probes: list[Probe]) -> None:
    """A paraphrase without a word in common comes before a near-copy of another meaning; TF-IDF says the opposite."""
    sentences = [probe.sentence for probe in probes] * 2
    others = [probe.paraphrase for probe in probes] + [probe.near_copy for probe in probes]

    def share_right(scores: np.ndarray) -> float:
        return float((scores[:100] > scores[100:]).mean())

    assert share_right(origin.similarity(sentences, others)) >= 0.9
    assert (
        share_right(
            TfidfCosine.load(next((planted / "origin/versions").glob("*/words"))).similarity(sentences, others)
        )
        < 0.1
    )


def test_a_pair_does_not_depend_on_the_others(planted: Path, origin: OriginSimilarity, probes: list[Probe]) -> None:
    """Many pairs and one, fresh and remembered, this process and another: the same number."""
    first, second = [p.sentence for p in probes[:5]], [p.paraphrase for p in probes[:5]]
    together = origin.similarity(first, second)
    np.testing.assert_array_equal(origin.similarity(first, second), together)
    fresh = OriginSimilarity.from_pretrained(planted / "origin", num_contexts=50)
    assert fresh.similarity(first[3:4], second[3:4])[0] == pytest.approx(together[3], abs=1e-5)
    np.testing.assert_allclose(origin.similarity(second, first), together, atol=1e-5)
    script = (
        "import sys; from ctxsim_hf import OriginSimilarity\n"
        "print(repr(float(OriginSimilarity.from_pretrained(sys.argv[1], num_contexts=50)"
        ".similarity([sys.argv[2]], [sys.argv[3]])[0])))"
    )
    words = [sys.executable, "-c", script, str(planted / "origin"), first[3], second[3]]
    printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert float(printed) == pytest.approx(together[3], abs=1e-5)


@pytest.mark.parametrize("compare_by", COMPARISONS)
def test_same_sentence(planted: Path, probes: list[Probe], compare_by: str) -> None:
    origin = OriginSimilarity.from_pretrained(planted / "origin", num_contexts=20, compare_by=compare_by)
    sentence = probes[0].sentence
    assert origin.similarity([sentence], [sentence])[0] == pytest.approx(1)


def test_strange_sentences(origin: OriginSimilarity, probes: list[Probe]) -> None:
    """Whatever comes has a similarity; two sentences without contexts have 0."""
    strange = ["", "   ", "\U0001f600\U0001f680", "nul\0inside", "x" * 100_000, "e\u0301"]
    scores = origin.similarity(strange, [probes[0].sentence] * len(strange))
    assert np.isfinite(scores).all() and (np.abs(scores) <= 1).all()
    np.testing.assert_array_equal(origin.similarity(["", "\U0001f600"], ["", "\U0001f680"]), 0)
    assert origin.similarity([], []).shape == (0,)


def test_bad_input(planted: Path, origin: OriginSimilarity) -> None:
    with pytest.raises(UserError, match="expected two lists of the same length, got 1 and 2"):
        origin.similarity(["a"], ["a", "b"])
    with pytest.raises(UserError, match="expected strings, but sentence 1 of list 2 is None"):
        origin.similarity(["a", "b"], ["a", None])  # type: ignore[list-item]
    with pytest.raises(UserError, match="sentence 0 of list 1 holds a lone surrogate"):
        origin.similarity(["\ud83d"], ["a"])
    with pytest.raises(UserError, match="expected two lists of sentences, got a string"):
        origin.similarity("a", "b")
    with pytest.raises(UserError, match="unknown setting nummer; expected one of background_size"):
        OriginSimilarity.from_pretrained(planted / "origin", nummer=3)
    with pytest.raises(UserError, match="strategy must be one of two_step, random, no_diversity, got 'best'"):
        OriginSimilarity.from_pretrained(planted / "origin", strategy="best")
    with pytest.raises(UserError, match="is not a local folder and could not be downloaded"):
        OriginSimilarity.from_pretrained("ctxsim/nowhere")


def test_signals_are_weighed_by_how_far_they_spread(
    planted: Path, origin: OriginSimilarity, probes: list[Probe]
) -> None:
    """A weight counts in deviations over background pairs, both measured here by hand."""
    pair = [probes[0].sentence], [probes[0].near_copy]
    both = OriginSimilarity.from_pretrained(
        planted / "origin", num_contexts=50, signals={"contexts": 1, "words": 0.5, "encoder": 0}
    )
    words = LetterCosine(TfidfCosine.load(next((planted / "origin/versions").glob("*/words"))))
    sentences = origin.background[:48]
    places = np.stack(np.triu_indices(48, 1), axis=1)
    by_words = words.similarity(*([sentences[place] for place in side] for side in places.T))
    by_contexts, _ = origin.label(sentences, places, "group")
    parts = np.array([1 / by_contexts.std(), 0.5 / max(by_words.std(), 0.01)])
    share, _ = parts / parts.sum()
    (alone,), (together,) = (list(system.compare(*pair)) for system in (origin, both))
    said = words.similarity(*pair)[0]
    assert 0 < share < 1 and said != alone.similarity
    assert together.similarity == pytest.approx(share * alone.similarity + (1 - share) * said)
    assert together.signals == {"contexts": alone.similarity, "words": pytest.approx(said)}
    assert together.spread == pytest.approx(share * alone.spread), "words do not move when contexts do"
    shown = str(both.explain(pair[0][0], pair[1][0]))
    assert f"(words {said:.3f} x {1 - share:.0%}, contexts {alone.similarity:.3f} x {share:.0%}), spread" in shown


def test_one_signal_alone_is_left_as_it_is(planted: Path, probes: list[Probe]) -> None:
    pair = [probes[0].sentence], [probes[0].near_copy]
    words = LetterCosine(TfidfCosine.load(next((planted / "origin/versions").glob("*/words")))).similarity(*pair)
    alone = OriginSimilarity.from_pretrained(planted / "origin", num_contexts=20, signals={"words": 3})
    np.testing.assert_array_equal(alone.similarity(*pair), words)
    (found,) = alone.compare(*pair)
    assert found.spread == 0 and found.contexts is None
    assert alone.explain(pair[0][0], pair[1][0]).num_contexts == (20, 20), "contexts are shown all the same"


def test_explanation(origin: OriginSimilarity, probes: list[Probe]) -> None:
    probe = probes[0]
    (pair,) = origin.compare([probe.sentence], [probe.near_copy])
    shown = origin.explain(probe.sentence, probe.near_copy)
    assert shown.similarity == pair.similarity and 0 < shown.spread < 0.5
    assert shown.num_contexts == (50, 50) and list(shown.signals) == ["contexts"]
    assert all(min(fit.fit) > 0 for fit in shown.both)
    assert shown.first_better and all(fit.fit[0] > max(0, fit.fit[1]) for fit in shown.first_better)
    assert shown.second_better and all(fit.fit[1] > max(0, fit.fit[0]) for fit in shown.second_better)
    first = shown.first_better[0]
    (place,) = [
        place for place, (chunk, position) in enumerate(origin.index.chunk_of(pair.contexts.contexts[:50]))
        if (chunk.chunk_id, position) == (first.context.chunk_id, first.context.position)
    ]  # fmt: skip
    assert first.terms["left"] == pytest.approx(pair.contexts.terms["left"][:, place], abs=1e-5)
    assert list(first.terms) == ["discriminative", "sentence", "left", "right"]  # those without a weight too
    text = str(shown)
    assert f"similarity {pair.similarity:.3f}" in text and "2 fits better" in text and first.doc_id in text


def test_a_context_of_both_sets_is_shown_once(origin: OriginSimilarity, probes: list[Probe]) -> None:
    shown = origin.explain(probes[0].sentence, probes[0].sentence)  # the two sets are the same
    places = [(fit.context.chunk_id, fit.context.position) for fit in shown.both]
    assert len(set(places)) == len(places) == 3
    assert all(fit.found_for == (1, 2) for fit in shown.both)


def test_command(ctxsim: Run, planted: Path, probes: list[Probe], tmp_path: Path) -> None:
    flags = ("similarity", "--origin", planted / "origin", "--num-contexts", 20)
    probe = probes[0]
    code, out, err = ctxsim(*flags, probe.sentence, probe.paraphrase)
    assert code == 0, err
    system = OriginSimilarity.from_pretrained(planted / "origin", num_contexts=20)
    expected = system.similarity([probe.sentence], [probe.paraphrase])[0]
    assert float(out) == pytest.approx(expected, abs=1e-4)
    assert "both fit" in ctxsim(*flags, probe.sentence, probe.paraphrase, "--explain")[1]
    file, output = tmp_path / "pairs.tsv", tmp_path / "scored.tsv"
    file.write_text(f"{probe.sentence}\t{probe.paraphrase}\n{probe.sentence}\t{probe.sentence}\n")
    assert ctxsim(*flags, "--pairs", file, "--output", output)[0] == 0
    rows = [line.split("\t") for line in output.read_text().splitlines()]
    assert rows[0][:2] == [probe.sentence, probe.paraphrase]
    assert float(rows[0][2]) == pytest.approx(expected, abs=1e-5) and float(rows[1][2]) == pytest.approx(1)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["one"], "expected two sentences, or --pairs FILE; got 1 sentences"),
        (["--pairs", "nowhere.tsv"], "cannot read 'nowhere.tsv': No such file"),
        (["--weights", "1", "1", "--mode", "zscore", "--", "a", "b"], "--weights takes 4 numbers"),
        (
            ["a", "b", "--mode", "euclid"],
            "--compare-by must be one of cosine, centered, zscore, whitened, got 'euclid'",
        ),
    ],
)
def test_command_errors(ctxsim: Run, planted: Path, words: list[str], message: str) -> None:
    code, _, err = ctxsim("similarity", "--origin", planted / "origin", *words)
    assert code == 2 and message in err and err.count("\n") == 1


def test_pairs_with_a_bad_line(ctxsim: Run, planted: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("a\tb\nonly one\n")
    code, _, err = ctxsim("similarity", "--origin", planted / "origin", "--pairs", tmp_path / "pairs.tsv")
    assert code == 2 and "line 2: expected sentence TAB sentence, got 1 columns" in err


def test_terms_of_weight_zero_need_no_model(planted: Path, probes: list[Probe]) -> None:
    only = OriginSimilarity.from_pretrained(
        planted / "origin", num_contexts=20, weights=ScoreWeights(0, 1, 0, 0), compare_by="zscore"
    )
    (pair,) = only.compare([probes[0].sentence], [probes[0].paraphrase])
    assert list(pair.contexts.terms) == ["sentence"]


def test_many_threads_get_what_one_gets(planted: Path, probes: list[Probe], monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if what is remembered is forgotten all the time."""
    monkeypatch.setattr("ctxsim_hf.origin.contexts_signal.REMEMBERED_CONTEXTS", 1)
    origin = OriginSimilarity.from_pretrained(planted / "origin", num_contexts=5)
    origin.contexts.sets.max_remembered = 1
    sentences = [probe.sentence for probe in probes[:4]]
    pairs = [(first, second) for first in sentences for second in sentences]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda pair: float(origin.similarity([pair[0]], [pair[1]])[0]), pairs))
    np.testing.assert_allclose(found, origin.similarity(*map(list, zip(*pairs, strict=True))), atol=1e-9)
