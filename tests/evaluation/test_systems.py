"""`kind:where`: every kind opens and scores, names and seeds, one line for what is wrong."""

import sys
from pathlib import Path

import numpy as np
import pytest
from tiny_surrogate import mixed_sentences, save_tiny

from ctxsim_hf import CrossSurrogateModel, SentenceEncoder
from ctxsim_hf.evaluation.system_folders import stage_digest
from ctxsim_hf.evaluation.systems import SYSTEM_KINDS, System, SystemResources, describe_kinds
from ctxsim_hf.origin.settings_arguments import SettingsArguments
from ctxsim_hf.runtime.errors import UserError

SENTENCES = [sentence for sentence in mixed_sentences(60) if 3 <= len(sentence.split()) <= 5]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    save_tiny(folder / "surrogate")
    save_tiny(folder / "cross", CrossSurrogateModel)
    return folder


def scores(spelling: str, data_root: Path | None = None) -> np.ndarray:
    system = System.parse(spelling).open(SystemResources(SettingsArguments(), data_root=data_root))
    found = np.asarray(system.similarity(SENTENCES[:3], SENTENCES[3:6]))
    assert found.shape == (3,) and np.isfinite(found).all()
    return found


def test_spellings() -> None:
    assert System.parse("tfidf") == ("tfidf", "tfidf", "")
    assert System.parse("surrogate:runs/a=1:b") == ("surrogate:runs/a=1:b", "surrogate", "runs/a=1:b")
    assert System.parse("ours=surrogate:runs/1") == ("ours", "surrogate", "runs/1")
    assert all(kind in describe_kinds() for kind in SYSTEM_KINDS)


@pytest.mark.parametrize(
    ("spelling", "message"),
    [
        ("tfidff", "unknown system 'tfidff'; expected one of origin:DIR, surrogate:DIR"),
        ("infersent:x", "unknown system 'infersent:x'"),
        ("surrogate", "expected surrogate:DIR, got 'surrogate'"),
        ("name=st:", "expected st:ID, got 'st:'"),
        ("tfidf:x", "expected tfidf, got 'tfidf:x'"),
    ],
)
def test_spellings_that_are_none(spelling: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        System.parse(spelling)


def test_one_surrogate_by_four_roads(models: Path) -> None:
    folder = models / "surrogate"
    direct = SentenceEncoder.from_pretrained(folder).similarity(SENTENCES[:3], SENTENCES[3:6])
    for kind in ("surrogate", "st"):
        assert scores(f"{kind}:{folder}") == pytest.approx(direct, abs=1e-4), kind
    assert not np.allclose(scores(f"hf-cls:{folder}"), direct, atol=1e-3)
    assert (scores(f"bertscore:{folder}") > 0).all()


def test_a_cross_surrogate(models: Path) -> None:
    import torch
    from transformers import AutoTokenizer

    model, tokenizer = (kind.from_pretrained(models / "cross") for kind in (CrossSurrogateModel, AutoTokenizer))
    inputs = tokenizer(
        SENTENCES[:3], SENTENCES[3:6], truncation=True, max_length=40, padding=True, return_tensors="pt"
    )
    with torch.inference_mode():
        expected = model.eval()(**inputs).logits[:, 0].numpy()
    assert scores(f"cross:{models / 'cross'}") == pytest.approx(expected, abs=1e-4)


def test_word_systems(data_root: Path, tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("".join(f"{word} {i} 1\n" for i, word in enumerate(SENTENCES[0].lower().split())))
    words = [f"{kind}:{tmp_path / 'v.txt'}" for kind in ("vectors", "sif", "usif")]
    for spelling in ("tfidf", "bm25", *words):
        scores(spelling, data_root)


def test_scores_made_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "scored.tsv"
    rows = [(SENTENCES[0], SENTENCES[3], 0.5), (SENTENCES[4], SENTENCES[1], -1), (SENTENCES[2], SENTENCES[5], 2)]
    path.write_text("".join(f"{one}\t{other}\t{score}\tspread\n" for one, other, score in rows))
    assert scores(f"scores:{path}").tolist() == [0.5, -1, 2]  # the second in the other order
    path.write_text(f"{SENTENCES[0]}\t{SENTENCES[3]}\t0.5\n")
    with pytest.raises(UserError, match="no score for 2 of 3 pairs"):
        scores(f"scores:{path}")
    path.write_text("one\tother\tmuch\n")
    with pytest.raises(UserError, match="line 1: expected sentence TAB sentence TAB score"):
        scores(f"scores:{path}")
    with pytest.raises(UserError, match="cannot read"):
        scores(f"scores:{tmp_path / 'absent'}")


def test_objects_and_folders_of_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, models: Path) -> None:
    package = tmp_path / "made_up_package"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('not to be imported')")
    (package / "model").symlink_to(models / "surrogate")
    (tmp_path / "made_up_encoder.py").write_text(
        "import numpy as np\n"
        "class Encoder:\n    def encode(self, sentences): return np.array([[len(s), 1.0] for s in sentences])\n"
        "class Scorer:\n    def similarity(self, first, second): return np.arange(len(first))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert scores("surrogate:package:made_up_package/model") == pytest.approx(scores(f"surrogate:{package / 'model'}"))
    (package / "stage.json").write_text("{}")
    assert stage_digest(System.parse("surrogate:package:made_up_package/")) is not None
    assert (scores("python:made_up_encoder:Encoder") > 0.9).all()
    assert scores("python:made_up_encoder:Scorer").tolist() == [0, 1, 2]
    for spelling, message in {
        "st:package:made_up_package/absent": "expected 'absent' in an installed package 'made_up_package'",
        "st:package:no_such_package/x": "installed package 'no_such_package'",
        "python:made_up_encoder:Absent": "expected python:MODULE:NAME",
    }.items():
        with pytest.raises(UserError, match=message):
            scores(spelling)
    assert "made_up_package" not in sys.modules


@pytest.mark.parametrize("spelling", ["st:no/model", "cross:no/model", "hf:no/model", "surrogate:no/model"])
def test_models_that_are_not_there(spelling: str) -> None:
    with pytest.raises(UserError, match="'no/model'"):
        scores(spelling)
