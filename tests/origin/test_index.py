"""`ctxsim index`: what it keeps, what it refuses, and what survives an interruption."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ctxsim_hf.origin.models import OriginModels
from ctxsim_hf.origin.similarity import OriginSimilarity
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.stage import Stage
from ctxsim_hf.text.chunks import Chunk, read_chunks

Run = Callable[..., tuple[int, str, str]]


def open_origin(folder: Path) -> OriginSimilarity:
    return OriginSimilarity.from_pretrained(folder)


@pytest.fixture
def origin(planted: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(planted / "origin", tmp_path / "origin"))


def test_contexts_are_those_of_the_chunks(planted: Path) -> None:
    index = open_origin(planted / "origin").index
    chunks = [Chunk.from_row(row) for row in read_chunks(planted / "chunks", "train")]
    expected = [(chunk, context.position) for chunk in chunks for context in chunk.contexts(1)]
    assert index.num_contexts == len(expected)
    contexts = index.contexts_at(np.arange(index.num_contexts))
    assert index.text(contexts) == expected
    np.testing.assert_array_equal(index.rows(contexts), np.arange(index.num_contexts))


def test_two_halves_make_a_whole(planted: Path) -> None:
    """The discriminator's parts lose nothing that single precision would keep, though ranking reads half."""
    origin = open_origin(planted / "origin")
    contexts = origin.index.contexts_at(np.arange(100))
    stored = origin.index.tokens(contexts)
    scorer = origin.context_sets.discriminator
    computed = scorer.prepare_contexts(type(stored)(stored.sentences, stored.left, stored.right))
    assert stored.discriminator_parts is not None
    np.testing.assert_allclose(stored.discriminator_parts, computed, atol=2e-6)
    assert origin.index.parts.dtype == np.float16


def test_killed_while_it_clears_up_it_clears_up(
    ctxsim: Run, planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = ("--discriminator", planted / "discriminator", "--generator", planted / "generator")
    words = ("index", "--chunks", planted / "chunks", *models, "--output", tmp_path / "out")

    def killed(stage: Stage, counts: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Stage, "finish", killed)
        assert ctxsim(*words)[0] == 130
    (tmp_path / "out.partial/blocks").mkdir()
    (tmp_path / "out.partial/blocks/000000000.npz").write_bytes(b"what was left")
    assert ctxsim(*words)[0] == 0
    assert (tmp_path / "out/stage.json").read_bytes() == (planted / "origin/stage.json").read_bytes()
    assert not (tmp_path / "out/blocks").exists()


def test_an_index_opens_no_generator_of_which_it_stores_nothing(planted: Path) -> None:
    assert len(OriginModels.for_indexing(planted / "origin").generators) == 1
    assert len(OriginModels.for_indexing(planted / "origin-seq2seq").generators) == 0
    assert len(OriginModels.from_origin(planted / "origin-seq2seq").generators) == 1


@pytest.mark.parametrize(
    "name", ["index/context_parts.npy", "index/normalisers.npy", "index/chunks.arrow", "index/tokens/tokens.npy"]
)
def test_damaged_file_is_refused(origin: Path, name: str) -> None:
    whole = (origin / name).read_bytes()
    (origin / name).write_bytes(whole[:-1])
    with pytest.raises(UserError, match=f"{Path(name).name}' is damaged: expected {len(whole)} bytes"):
        open_origin(origin)
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    (origin / name).write_bytes(flipped)
    with pytest.raises(UserError, match=f"{Path(name).name}' is damaged: its bytes changed"):
        open_origin(origin)
    (origin / name).unlink()
    with pytest.raises(UserError, match=f"{Path(name).name}' is missing"):
        open_origin(origin)


def test_damage_after_it_was_opened_once(origin: Path) -> None:
    open_origin(origin)
    path = next((origin / "index/tfidf").glob("*.npy"))
    flipped = bytearray(path.read_bytes())
    flipped[-1] ^= 1
    path.write_bytes(flipped)
    with pytest.raises(UserError, match="its bytes changed"):
        open_origin(origin)


def test_another_model_is_refused(planted: Path, origin: Path) -> None:
    """Vectors of one discriminator with the weights of another would give wrong answers in silence."""
    weights = origin / "discriminator/model.safetensors"
    other = bytearray(weights.read_bytes())
    other[-4:] = b"\0\0\0\0"
    weights.write_bytes(other)
    with pytest.raises(UserError, match=r"model.safetensors' is damaged: its bytes changed"):
        open_origin(origin)


def test_another_versions_format_is_refused(origin: Path) -> None:
    layout = json.loads((origin / "layout.json").read_text()) | {"format": 99}
    (origin / "layout.json").write_text(json.dumps(layout))
    stage = json.loads((origin / "stage.json").read_text())
    stage["files"] = {}
    (origin / "stage.json").write_text(json.dumps(stage))
    with pytest.raises(UserError, match="has the format 99, this version reads 1; make it again"):
        open_origin(origin)


def test_models_that_do_not_belong_together(ctxsim: Run, planted: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(planted / "generator", tmp_path / "generator"))
    tokenizer = other / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text() + " ")
    flags = ("--chunks", planted / "chunks", "--discriminator", planted / "discriminator", "--output", tmp_path / "o")
    code, _, err = ctxsim("index", *flags, "--generator", other)
    assert code == 2 and "were trained with different tokenizers" in err
    code, _, err = ctxsim("index", *flags, "--generator", planted / "generator", planted / "generator")
    assert code == 2 and "--generator takes one folder for each direction, got 2 of ['generator']" in err
    code, _, err = ctxsim("index", *flags, "--generator", planted / "discriminator")
    assert code == 2 and "was made by `ctxsim train discriminator`" in err


def test_interrupted_and_resumed_gives_the_same_bytes(
    ctxsim: Run, planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ctxsim_hf.origin.context_arrays as context_arrays

    monkeypatch.setattr(context_arrays, "CHUNKS_PER_BLOCK", 100)
    words = ("index", "--chunks", planted / "chunks", "--discriminator", planted / "discriminator")
    words = (*words, "--generator", planted / "generator", "--output")
    assert ctxsim(*words, tmp_path / "whole")[0] == 0
    make_block, calls = context_arrays._make_block, []

    def stop_at_the_third(*arguments: object) -> object:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return make_block(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(context_arrays, "_make_block", stop_at_the_third)
    assert ctxsim(*words, tmp_path / "resumed")[0] == 130
    assert ctxsim(*words, tmp_path / "resumed")[0] == 0
    whole, resumed = (json.loads((tmp_path / name / "stage.json").read_text()) for name in ("whole", "resumed"))
    assert whole == resumed


def test_the_bytes_are_the_same_for_any_number_of_workers(ctxsim: Run, planted: Path, tmp_path: Path) -> None:
    words = ("index", "--chunks", planted / "chunks", "--discriminator", planted / "discriminator")
    words = (*words, "--generator", planted / "generator", "--workers", "2", "--output", tmp_path / "two")
    assert ctxsim(*words)[0] == 0
    one, two = (json.loads((folder / "stage.json").read_text()) for folder in (planted / "origin", tmp_path / "two"))
    assert one == two
