"""What a score means: shares of random and of adjacent pairs below it, kept in a folder."""

from pathlib import Path

import numpy as np
import pytest

from ctxsim_hf.encoder.thresholds import THRESHOLDS_FILE, Thresholds
from ctxsim_hf.runtime.errors import UserError


def test_shares_by_hand() -> None:
    thresholds = Thresholds.from_scores(random=np.arange(101) / 100, adjacent=np.array([0.5] * 60 + [1.0] * 41))
    assert thresholds.shares(0.25) == (pytest.approx(0.25), 0)
    assert thresholds.shares(0.255)[0] == pytest.approx(0.255)
    assert thresholds.shares(0.5)[1] == 0  # what is equal is not below
    assert thresholds.shares(0.6)[1] == pytest.approx(0.59, abs=0.01)
    assert thresholds.shares(-1) == (0, 0) and thresholds.shares(2) == (1, 1)
    assert thresholds.describe(0.99) == "above 99 % of random pairs of sentences and 60 % of adjacent ones"
    assert thresholds.describe(0.999) == "above 99 % of random pairs of sentences and 60 % of adjacent ones"
    assert thresholds.describe(2) == "above all 101 random pairs of sentences and all adjacent ones"


def test_shares_are_those_of_the_scores() -> None:
    random, adjacent = np.random.default_rng(0).normal(size=(2, 2000))
    thresholds = Thresholds.from_scores(random, adjacent + 1)
    for score in (-1.0, 0.3, 2.0):
        assert thresholds.shares(score) == pytest.approx(
            (np.mean(random < score), np.mean(adjacent + 1 < score)), abs=0.01
        )


def test_kept_in_a_folder(tmp_path: Path) -> None:
    assert Thresholds.load(tmp_path) is None
    thresholds = Thresholds.from_scores(np.arange(10.0), np.arange(10.0) + 5)
    thresholds.save(tmp_path)
    before = (tmp_path / THRESHOLDS_FILE).read_bytes()
    again = Thresholds.load(tmp_path)
    assert again is not None and again.pairs == 10 and again.shares(7.3) == thresholds.shares(7.3)
    again.save(tmp_path)
    assert (tmp_path / THRESHOLDS_FILE).read_bytes() == before


def test_random_pairs_alone(tmp_path: Path) -> None:
    thresholds = Thresholds.from_scores(np.arange(101) / 100, None, {"seed": 0})
    thresholds.save(tmp_path)
    again = Thresholds.load(tmp_path)
    assert again is not None and again.shares(0.25) == (pytest.approx(0.25), None) and again.settings == {"seed": 0}
    assert again.describe(0.25) == "above 25 % of random pairs of sentences"


@pytest.mark.parametrize("text", ["{", "{}", '{"random": [1], "adjacent": [1], "pairs": 1}'])
def test_a_damaged_file(tmp_path: Path, text: str) -> None:
    (tmp_path / THRESHOLDS_FILE).write_text(text)
    with pytest.raises(UserError, match=r"thresholds.json' is damaged"):
        Thresholds.load(tmp_path)
