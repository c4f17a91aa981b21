"""A corpus with a planted truth in Chinese characters, with no space between words or sentences."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from planted import ChinesePlantedCorpus

from ctxsim_hf import SentenceEncoder
from ctxsim_hf.cli import main
from ctxsim_hf.origin.comparison import COMPARISONS
from ctxsim_hf.origin.similarity import OriginSimilarity
from ctxsim_hf.text.lexical import TfidfCosine

Run = Callable[..., tuple[int, str, str]]
SETTINGS: list[dict[str, object]] = [
    *({"compare_by": name} for name in COMPARISONS),
    {"signals": {"contexts": 1, "words": 0.5}},
]
PROBES = ChinesePlantedCorpus().probes(100)


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def command(*words: object) -> None:
        assert main([str(word) for word in words]) == 0

    folder = tmp_path_factory.mktemp("chinese")
    ChinesePlantedCorpus().write(folder / "texts.jsonl")
    chunks, tokenizer = folder / "chunks", folder / "tokenizer"
    command("chunk", "--corpus", folder / "texts.jsonl", "--language", "zh", "--held-out", 0.05, "--output", chunks)
    command("train-tokenizer", "--chunks", chunks, "--vocab-size", 800, "--output", tokenizer)
    training = ("--chunks", chunks, "--tokenizer", tokenizer, "--preset", "tiny", "--eval-every", 1000)
    discriminator, generator = folder / "discriminator", folder / "generator"
    command("train", "discriminator", *training, "--max-steps", 10, "--output", discriminator)
    command("train", "generator", *training, "--max-steps", 150, "--output", generator)
    models = ("--discriminator", discriminator, "--generator", generator)
    command("index", "--chunks", chunks, *models, "--output", folder / "origin")
    return folder / "origin"


def test_planted_paraphrases(origin: Path) -> None:
    """A paraphrase without a word in common comes before a near-copy of another meaning; TF-IDF says the opposite."""
    sentences = [probe.sentence for probe in PROBES] * 2
    others = [probe.paraphrase for probe in PROBES] + [probe.near_copy for probe in PROBES]

    def share_right(scores: np.ndarray) -> float:
        return float((scores[:100] > scores[100:]).mean())

    similarity = OriginSimilarity.from_pretrained(origin, num_contexts=50).similarity(sentences, others)
    assert share_right(similarity) >= 0.9
    assert (
        share_right(TfidfCosine.load(next((origin / "versions").glob("*/words"))).similarity(sentences, others)) < 0.1
    )


@pytest.mark.parametrize("settings", SETTINGS)
def test_same_sentence(origin: Path, settings: dict[str, object]) -> None:
    sentences = [probe.sentence for probe in PROBES[:5]]
    similarity = OriginSimilarity.from_pretrained(origin, num_contexts=20, **settings).similarity(sentences, sentences)
    assert similarity == pytest.approx(np.ones(5))


def test_adapt(ctxsim: Run, tmp_path: Path) -> None:
    ChinesePlantedCorpus().write(tmp_path / "texts.jsonl")
    words = ("adapt", "--corpus", tmp_path / "texts.jsonl", "--preset", "tiny", "--language", "zh", "--minutes", 0.2)
    code, said, progress = ctxsim(*words, "--workers", 1, "--output", tmp_path / "out")
    assert code == 0, progress
    assert "| surrogate |" in said and "| tfidf |" in said
    encoder = SentenceEncoder.from_pretrained(tmp_path / "out/ctxsim/surrogate-tiny")
    probe = PROBES[0]
    same, other = encoder.similarity([probe.sentence] * 2, [probe.sentence, probe.paraphrase])
    assert same == pytest.approx(1, abs=1e-5) and other < 0.99
