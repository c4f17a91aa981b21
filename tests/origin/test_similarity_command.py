"""`ctxsim similarity` by a surrogate; by an origin see origin/test_similarity.py."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tiny_surrogate import mixed_sentences, save_tiny

from ctxsim_hf import SentenceEncoder
from ctxsim_hf.encoder.thresholds import Thresholds
from ctxsim_hf.origin import similarity_command
from ctxsim_hf.origin.settings import OriginSettings

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def surrogate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("surrogate"))


def test_two_sentences_and_a_file_of_pairs(ctxsim: Run, surrogate: Path, tmp_path: Path) -> None:
    first, second = mixed_sentences(8)[:4], mixed_sentences(8)[4:]
    scores = SentenceEncoder.from_pretrained(surrogate).similarity(first, second)
    flags = ("similarity", "--surrogate", surrogate)
    assert ctxsim(*flags, first[0], second[0])[:2] == (0, f"{scores[0]:.4f}\n")
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"{a}\t{b}\n" for a, b in zip(first, second, strict=True)))
    code, out, err = ctxsim(*flags, "--pairs", pairs, "--output", tmp_path / "scored.tsv")
    assert (code, out) == (0, f"4 pairs with score in {tmp_path / 'scored.tsv'}\n"), err
    rows = [line.split("\t") for line in (tmp_path / "scored.tsv").read_text().splitlines()]
    assert [row[:2] for row in rows] == [list(pair) for pair in zip(first, second, strict=True)]
    assert [float(row[2]) for row in rows] == pytest.approx(scores.tolist(), abs=2e-6)


def test_an_output_that_cannot_be_written_is_refused_before_anything_is_scored(ctxsim: Run, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("a\tb\n")
    for output, message in ((tmp_path, "is a folder"), (pairs, "is read and would be overwritten")):
        code, _, err = ctxsim("similarity", "--surrogate", "nowhere", "--pairs", pairs, "--output", output)
        assert code == 2 and message in err and err.count("\n") == 1


def test_scores_are_written_as_they_come(ctxsim: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs, scored = tmp_path / "pairs.tsv", tmp_path / "scored.tsv"
    pairs.write_text("a\tb\n" * 10_000)
    sizes = []

    def scores(*_: object) -> Iterator[tuple[float]]:
        for _pair in range(10_000):
            sizes.append((tmp_path / "scored.tsv.ctxsim-partial/output").stat().st_size)
            yield (0.5,)

    monkeypatch.setattr(similarity_command, "_score_pairs", scores)
    code, out, err = ctxsim("similarity", "--surrogate", "s", "--pairs", pairs, "--output", scored)
    assert (code, out) == (0, f"10000 pairs with score in {scored}\n"), err
    assert sizes[0] == 0 < sizes[-1] < scored.stat().st_size


def test_what_a_score_means(ctxsim: Run, surrogate: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(surrogate, tmp_path / "surrogate"))
    Thresholds.from_scores(random=np.linspace(-1, 0.5, 1001), adjacent=np.linspace(0, 2, 1001)).save(folder)
    code, out, _ = ctxsim("similarity", "--surrogate", folder, "One sentence.", "One sentence.")
    assert (code, out) == (0, "1.0000\nabove all 1,001 random pairs of sentences and 50 % of adjacent ones\n")


def test_what_a_score_means_with_other_settings_is_not_known(ctxsim: Run, planted: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(planted / "origin", tmp_path / "origin"))
    settings = OriginSettings.load(folder).override(num_contexts=10).to_json()
    Thresholds.from_scores(np.linspace(-1, 0.5, 1001), np.linspace(0, 1, 1001), settings).save(folder)
    words = ("similarity", "--origin", folder, "The cat sat there.", "The cat sat there.", "--num-contexts")
    assert "random pairs" in ctxsim(*words, 10)[1]
    assert "random pairs" not in ctxsim(*words, 11)[1]


def test_what_only_an_origin_has(ctxsim: Run, surrogate: Path) -> None:
    code, _, err = ctxsim("similarity", "--surrogate", surrogate, "--explain", "--num-contexts", 5, "a", "b")
    assert code == 2 and "a surrogate has no contexts: leave out --explain, --num-contexts, or --surrogate" in err
    code, _, err = ctxsim("similarity", "--surrogate", surrogate / "1_Pooling", "a", "b")
    assert code == 2 and "expected a surrogate and its tokenizer in" in err and err.count("\n") == 1
