"""The signal `cloze`, over a tiny random language model."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from planted import PlantedCorpus
from tiny_language_model import index_tiny_llama, save_tiny_llama

from ctxsim_hf.context_models.causal.scoring import CausalContextModel
from ctxsim_hf.context_models.registry import load_context_model
from ctxsim_hf.origin.cloze_signal import ClozeModel, ClozeSignal, Whitening
from ctxsim_hf.origin.fit_score import answered_terms
from ctxsim_hf.origin.similarity import OriginSimilarity

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def origin_folder(planted: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An origin whose one context model is the language model."""
    return index_tiny_llama(planted / "chunks", tmp_path_factory.mktemp("cloze"))


@pytest.fixture(scope="module")
def pairs() -> tuple[list[str], list[str]]:
    probes = PlantedCorpus().probes(4)
    return [probe.sentence for probe in probes], [probe.paraphrase for probe in probes]


def test_an_origin_of_a_language_model(origin_folder: Path, pairs: tuple[list[str], list[str]]) -> None:
    origin = OriginSimilarity.from_pretrained(origin_folder)
    assert origin.settings.signals == {"cloze": 1.0, "words": 0.2}
    assert origin.similarity(pairs[0], pairs[0]) == pytest.approx(1)
    alone = OriginSimilarity.from_pretrained(origin_folder, signals={"cloze": 1})
    signal = alone.signals["cloze"]
    assert isinstance(signal, ClozeSignal)
    np.testing.assert_allclose(alone.similarity(*pairs), signal.similarity(*pairs))
    labels, spreads = alone.label(
        [*pairs[0], *pairs[1]], np.array([[place, 4 + place] for place in range(4)]), "group"
    )
    np.testing.assert_allclose(labels, alone.similarity(*pairs), atol=1e-6)
    assert not spreads.any()  # other contexts cannot be drawn: these are all


class ThreeStates:
    """A model whose states are three given directions."""

    def vectors(self, sentences: Sequence[str]) -> np.ndarray:
        directions = {"east": [3.0, 0, 0], "north": [0, 2.0, 0], "up": [0, 0, 1.0]}
        return np.array([[directions[sentence]] for sentence in sentences], np.float32)


def test_a_sentence_is_no_neighbour_of_itself() -> None:
    """However many neighbours are asked for of a small background."""
    model, names = ThreeStates(), ["east", "north", "up"]
    background = model.vectors(names)
    found = [
        ClozeSignal(model, Whitening(background, 0, 0.01), None, background, number).similarity(names, names[::-1])
        for number in (2, 3, 10)
    ]
    np.testing.assert_allclose(found[1:], [found[0]] * 2)


def test_whitening_by_hand() -> None:
    rng = np.random.default_rng(0)
    background = rng.normal(size=(500, 1, 3)) * [4.0, 1.0, 0.25] + 7
    whole = Whitening(background, power=1, ridge=1e-9)(background)
    states = (background[:, 0] - background[:, 0].mean(0)) / background[:, 0].std(0)
    expected = states / np.linalg.norm(states, axis=1, keepdims=True)
    np.testing.assert_allclose(whole[:50] @ whole[:50].T, expected[:50] @ expected[:50].T, atol=0.1)
    none = Whitening(background, power=0, ridge=1e-9)(background)
    centred = background[:, 0] - background[:, 0].mean(0)
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    np.testing.assert_allclose(none[:50] @ none[:50].T, centred[:50] @ centred[:50].T, atol=1e-5)


def test_two_bridges_are_averaged() -> None:
    rng = np.random.default_rng(0)
    background, states = rng.normal(size=(100, 2, 5)), rng.normal(size=(4, 2, 5))
    both = Whitening(background, 0.5, 0.01)(states)
    single = [Whitening(background[:, [b]], 0.5, 0.01)(states[:, [b]]) for b in range(2)]
    np.testing.assert_allclose(both @ both.T, np.mean([one @ one.T for one in single], axis=0), atol=1e-5)


def test_cached_equals_fresh(origin_folder: Path, pairs: tuple[list[str], list[str]], tmp_path: Path) -> None:
    fresh = OriginSimilarity.from_pretrained(origin_folder).similarity(*pairs)
    for _ in range(2):
        origin = OriginSimilarity.from_pretrained(origin_folder, cache_folder=tmp_path)
        np.testing.assert_allclose(origin.similarity(*pairs), fresh, atol=1e-6)
    (file,) = tmp_path.glob("cloze-*.sqlite")
    model = load_context_model(origin_folder / "context_models/llama")
    assert isinstance(model, ClozeModel)
    kept = ClozeSignal(model, Whitening(np.zeros((2, 2, 32)), 0, 1), file)
    kept.model = None  # type: ignore[assignment]  # everything comes from the file
    np.testing.assert_allclose((kept.vectors(pairs[0]) * kept.vectors(pairs[0])).sum(1), 1, atol=1e-5)


def test_a_light_generator_knows_the_words_of_contexts_too(planted: Path) -> None:
    """Its logits are linear in one vector a sentence, so no context need be retrieved."""
    origin = OriginSimilarity.from_pretrained(planted / "origin", signals={"cloze": 1})
    (light,) = (model for model in origin.models.values() if isinstance(model, ClozeModel))
    assert light.cloze_power == 0.5
    sentences = origin.background[:8]
    generator = light.model  # type: ignore[attr-defined]
    prepared = light.prepare_sentences(sentences)  # type: ignore[attr-defined]
    source, _ = prepared.source("right")
    states = torch.from_numpy(light.vectors(sentences)[:, 0])
    torch.testing.assert_close(generator.sentence_to_right(states), source)
    np.testing.assert_allclose(origin.similarity(sentences, sentences), 1, atol=1e-5)
    # Planted paraphrases share their contexts, not their words.
    assert origin.settings.signals == {"cloze": 1}


def test_a_generator_answers_the_terms_beside_a_language_model(ctxsim: Run, planted: Path, tmp_path: Path) -> None:
    model = save_tiny_llama(tmp_path / "model")
    words = ("index", "--chunks", planted / "chunks", "--generator", planted / "generator", "--background", 40)
    code, _, err = ctxsim(*words, "--context-model", model, "--output", tmp_path / "refused")
    assert code == 2 and "two context models answer the term 'sentence': light_generator and llama" in err
    code, _, err = ctxsim(*words, "--cloze-only", "--output", tmp_path / "refused")
    assert code == 2 and "--cloze-only is for a causal language model, but --context-model names none" in err
    code, _, err = ctxsim(*words, "--context-model", model, "--cloze-only", "--output", tmp_path / "origin")
    assert code == 0, err
    weights = {"contexts": 1.0, "cloze": 1.0}
    origin = OriginSimilarity.from_pretrained(tmp_path / "origin", signals=weights)
    assert answered_terms(origin.models) == dict.fromkeys(("sentence", "left", "right"), "light_generator")
    probes = PlantedCorpus().probes(3)
    pairs = [probe.sentence for probe in probes], [probe.paraphrase for probe in probes]
    alone = {name: OriginSimilarity.from_pretrained(tmp_path / "origin", signals={name: 1.0}) for name in weights}
    expected = sum(origin.shares[name] * alone[name].similarity(*pairs) for name in weights)
    np.testing.assert_allclose(origin.similarity(*pairs), expected, atol=1e-6)


def test_other_bridges(
    ctxsim: Run, planted: Path, origin_folder: Path, pairs: tuple[list[str], list[str]], tmp_path: Path
) -> None:
    bridge = 'The sentence "{}" is about'
    index = ("index", "--chunks", planted / "chunks", "--background", 40)
    model = ("--context-model", origin_folder / "context_models/llama")
    code, _, err = ctxsim(*index, *model, "--bridges", bridge, "--output", tmp_path / "origin")
    assert code == 0, err
    origin = OriginSimilarity.from_pretrained(tmp_path / "origin", signals={"cloze": 1})
    asked = origin.models["llama"]
    assert isinstance(asked, CausalContextModel) and asked.settings.bridges == [bridge]
    before = load_context_model(origin_folder / "context_models/llama")
    assert isinstance(before, CausalContextModel)
    before.change(bridges=[bridge])
    np.testing.assert_allclose(origin.version.cloze_states(), before.vectors(origin.background), atol=1e-4)
    # In a cache that both share, each finds its own states.
    folders = [origin_folder, tmp_path / "origin", origin_folder, tmp_path / "origin"]
    cached = [
        OriginSimilarity.from_pretrained(folder, signals={"cloze": 1}, cache_folder=tmp_path / "cache")
        for folder in folders
    ]
    one, other, *again = [origin.similarity(*pairs) for origin in cached]
    np.testing.assert_allclose(again, [one, other], atol=1e-6)
    np.testing.assert_allclose(origin.similarity(*pairs), other, atol=1e-6)
    assert np.abs(one - other).max() > 0.01
    code, _, err = ctxsim(*index, *model, "--bridges", "no place", "--output", tmp_path / "refused")
    assert code == 2 and "a bridge takes the sentence at {}; got 'no place'" in err
    generator = ("--generator", planted / "generator")
    code, _, err = ctxsim(*index, *generator, "--bridges", bridge, "--output", tmp_path / "refused")
    assert code == 2 and "--bridges is for a causal language model, but --context-model names none" in err


def test_what_a_sentence_has_with_everything_is_taken_off(origin_folder: Path) -> None:
    model = load_context_model(origin_folder / "context_models/llama")
    assert isinstance(model, ClozeModel)
    texts = ["One sentence.", "Another sentence of this test.", "Something else entirely", "And a last one!"]
    background = model.vectors([f"Sentence {number} of the background." for number in range(20)])
    whitening = Whitening(background, 0, 0.01)
    plain, corrected = ClozeSignal(model, whitening), ClozeSignal(model, whitening, None, background, 3)
    vectors, others = plain.vectors(texts), whitening(background)
    near = np.sort(vectors @ others.T, axis=1)[:, -3:].mean(1)
    cosines = plain.similarity(texts[:2], texts[2:])
    common = (near[:2] + near[2:]) / 2
    np.testing.assert_allclose(
        corrected.similarity(texts[:2], texts[2:]), (cosines - common) / (1 - common), atol=1e-5
    )
    np.testing.assert_allclose(corrected.similarity(texts, texts), 1, atol=1e-5)
    pairs = np.array([[0, 2], [1, 3]])
    expected = corrected.similarity(texts[:2], texts[2:])
    np.testing.assert_allclose(corrected.group_similarity(texts, pairs), expected, atol=1e-5)


def test_an_explanation_names_the_words_that_sentences_suggest(planted: Path, tmp_path: Path) -> None:
    """By a model of random weights, but with whole words of the corpus among its tokens."""
    texts = [json.loads(line)["text"] for line in (planted / "texts.jsonl").open()]
    origin = OriginSimilarity.from_pretrained(
        index_tiny_llama(planted / "chunks", tmp_path, text=texts, vocab_size=1200), signals={"cloze": 1}
    )
    model = origin.models["llama"]
    assert isinstance(model, CausalContextModel)
    probes = PlantedCorpus().probes(20)
    explained = (origin.explain(probe.sentence, probe.near_copy) for probe in probes)
    found, words = next((one, one.words) for one in explained if one.words and all(one.words.groups.values()))
    for name, group in words.groups.items():
        assert name in ("both suggest", "only 1 suggests", "only 2 suggests")
        assert f"{name}: {', '.join(group)}" in str(found).splitlines()
        assert f"<b>{name}</b><br>{', '.join(group)}</div>" in found.html()
    assert {*words.both, *words.first, *words.second} <= {word.strip(".").lower() for t in texts for word in t.split()}
    sentences = [found.sentence1, found.sentence2]
    usual = model.word_scores(origin.background)
    scores = (model.word_scores(sentences) - usual.mean(0)) / usual.std(0)
    tokens = [word.lower() for word in model.words]

    def suggested(word: str) -> np.ndarray:
        """Of the words that are this one but for the case: (sentences, words)."""
        return scores[:, [place for place, token in enumerate(tokens) if token == word]]

    assert all(suggested(word).min(0).max() > 1.4 for word in words.both)
    for row, group in enumerate((words.first, words.second)):
        for word in group:
            own, other = suggested(word)[[row, 1 - row]]
            assert ((own > 1.4) & (other < 0.8)).any()
    turned = origin.explain(*sentences[::-1]).words
    assert turned is not None and (turned.both, turned.first, turned.second) == (words.both, words.second, words.first)


def test_a_sentence_that_is_longer_than_the_model_reads(ctxsim: Run, origin_folder: Path) -> None:
    for flags in ((), ("--explain",)):
        code, out, err = ctxsim("similarity", "A cat sat there.", "word " * 600, "--origin", origin_folder, *flags)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "the model reads 512 tokens at most, but a text has" in err and "word word" in err
