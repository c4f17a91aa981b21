"""`ctxsim index`: what it keeps, what it refuses, and what survives an interruption."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from planted import PlantedCorpus
from stage_records import rewrite_stage

from ctxsim_hf.context_models.score_weights import ScoreWeights
from ctxsim_hf.origin import segment_build
from ctxsim_hf.origin.context_arrays import ContextArrays
from ctxsim_hf.origin.layout import Layout
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
    contexts = index.chunks.contexts_at(np.arange(index.num_contexts))
    assert index.chunk_of(contexts) == expected
    np.testing.assert_array_equal(index.chunks.context_rows(contexts), np.arange(index.num_contexts))


def test_two_halves_make_a_whole(planted: Path) -> None:
    """The discriminator's parts lose nothing that single precision would keep, though ranking reads half."""
    origin = open_origin(planted / "origin")
    contexts = origin.index.chunks.contexts_at(np.arange(100))
    model = origin.models["discriminator"]
    stored = origin.index.contexts(contexts).for_model("discriminator")
    computed = model.prepare_contexts(replace(stored, stored={}))
    np.testing.assert_allclose(model.prepare_contexts(stored), computed, atol=2e-6)
    assert {array.dtype for array in origin.index.stored["discriminator"].values()} == {np.dtype(np.float16)}


def test_killed_while_it_clears_up_it_clears_up(
    ctxsim: Run, planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = ("--discriminator", planted / "discriminator", "--generator", planted / "generator")
    words = ("index", "--chunks", planted / "chunks", *models, "--output", tmp_path / "out")

    def killed(stage: Stage, counts: object, **more: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Stage, "finish", killed)
        assert ctxsim(*words)[0] == 130
    (segment,) = (tmp_path / "out.ctxsim-partial/output/segments").iterdir()
    (segment / "blocks").mkdir()
    (segment / "blocks/000000000.npz").write_bytes(b"what was left")
    assert ctxsim(*words)[0] == 0
    assert (tmp_path / "out/stage.json").read_bytes() == (planted / "origin/stage.json").read_bytes()
    assert not list((tmp_path / "out").rglob("blocks"))


def test_an_index_opens_no_model_of_which_it_stores_nothing(planted: Path) -> None:
    origin, seq2seq = planted / "origin", planted / "origin-seq2seq"
    assert Layout.load(origin).storing_models(origin) == ["discriminator", "light_generator"]
    assert Layout.load(seq2seq).storing_models(seq2seq) == ["discriminator"]
    assert list(Layout.load(seq2seq).open_models(seq2seq, "cpu")) == ["discriminator", "generator"]


@pytest.mark.parametrize(
    "name",
    [
        "SEGMENT/stored/discriminator/parts.npy",
        "SEGMENT/stored/light_generator/normalisers.npy",
        "SEGMENT/chunks.arrow",
        "SEGMENT/tokens/tokens.npy",
        "tokenizer/tokenizer.json",
    ],
)
def test_damaged_file_is_refused(origin: Path, name: str) -> None:
    name = name.replace("SEGMENT", next((origin / "segments").iterdir()).relative_to(origin).as_posix())
    whole = (origin / name).read_bytes()
    (origin / name).write_bytes(whole[:-1])
    with pytest.raises(UserError, match=f"{Path(name).name}' is damaged: expected {len(whole)} bytes"):
        open_origin(origin)
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    (origin / name).write_bytes(flipped)
    with pytest.raises(UserError, match=f"{Path(name).name}' is damaged: its content changed"):
        open_origin(origin)
    (origin / name).unlink()
    with pytest.raises(UserError, match=f"{Path(name).name}' is missing"):
        open_origin(origin)


def test_damage_after_it_was_opened_once(origin: Path) -> None:
    open_origin(origin)
    path = next((origin / "segments").glob("*/tfidf/*.npy"))
    flipped = bytearray(path.read_bytes())
    flipped[-1] ^= 1
    path.write_bytes(flipped)
    with pytest.raises(UserError, match="its content changed"):
        open_origin(origin)


def test_another_model_is_refused(planted: Path, origin: Path) -> None:
    """Vectors of one discriminator with the weights of another would give wrong answers in silence."""
    weights = origin / "context_models/discriminator/model.safetensors"
    other = bytearray(weights.read_bytes())
    other[-4:] = b"\0\0\0\0"
    weights.write_bytes(other)
    with pytest.raises(UserError, match=r"model.safetensors' is damaged: its content changed"):
        open_origin(origin)


def test_another_versions_format_is_refused(origin: Path) -> None:
    layout = json.loads((origin / "layout.json").read_text()) | {"format": 99}
    (origin / "layout.json").write_text(json.dumps(layout))
    rewrite_stage(origin)
    with pytest.raises(UserError, match="has the format 99, this version reads 3; make it again"):
        open_origin(origin)


def test_models_that_do_not_belong_together(ctxsim: Run, planted: Path, tmp_path: Path) -> None:
    flags = ("--chunks", planted / "chunks", "--output", tmp_path / "o")
    both = (planted / "generator", planted / "seq2seq")
    code, _, err = ctxsim("index", *flags, "--generator", *both)
    assert code == 2
    assert "two context models answer the term 'sentence': light_generator and generator; leave one out" in err
    code, _, err = ctxsim("index", *flags, "--generator", planted / "generator", planted / "generator")
    assert code == 2 and "answer the term 'sentence': light_generator and light_generator-2" in err
    code, _, err = ctxsim("index", *flags, "--context-model", planted / "chunks")
    assert code == 2 and "expected a context model in" in err and "no config.json" in err
    code, _, err = ctxsim("index", *flags)
    assert code == 2 and "an index needs a context model: name one with --generator or --context-model" in err
    assert not (tmp_path / "o").exists()


def test_a_weighted_term_that_no_model_answers(ctxsim: Run, without_ranker: Path) -> None:
    code, _, err = ctxsim("similarity", "--origin", without_ranker, "--weights", 1, 0, 1, 1, "--", "a b", "a c")
    assert code == 2 and "no model answers the term discriminative; add one, or give the term the weight 0" in err
    assert "(there are models for: sentence, left, right)" in err


@pytest.fixture(scope="module")
def without_ranker(planted: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An origin without a discriminator."""
    from ctxsim_hf.cli import main

    output = tmp_path_factory.mktemp("without") / "origin"
    words = ("index", "--chunks", planted / "chunks", "--generator", planted / "generator", "--output", output)
    assert main([str(word) for word in words]) == 0
    return output


def test_without_a_discriminator(without_ranker: Path) -> None:
    """Paraphrases are found all the same, in contexts that fit as well."""
    origin = OriginSimilarity.from_pretrained(without_ranker, num_contexts=50)
    assert list(origin.models) == ["light_generator"] and list(origin.index.stored) == ["light_generator"]
    probes = PlantedCorpus().probes(30)
    sentences = [probe.sentence for probe in probes]
    near, far = (
        origin.similarity(sentences, others)
        for others in ([probe.paraphrase for probe in probes], [probe.near_copy for probe in probes])
    )
    assert (near > far).mean() >= 0.9


def test_a_model_with_another_tokenizer(ctxsim: Run, planted: Path, tmp_path: Path) -> None:
    """The index keeps tokens of the first model; what another reads is made from text, and scores as it should."""
    chunks, tokenizer, generator = planted / "chunks", tmp_path / "tokenizer", tmp_path / "generator"
    vocabulary = ("--vocab-size", 520, "--lowercase")
    assert ctxsim("train-tokenizer", "--chunks", chunks, *vocabulary, "--output", tokenizer)[0] == 0
    training = ("--preset", "tiny", "--eval-every", 1000, "--max-steps", 5, "--output", generator)
    assert ctxsim("train", "generator", "--chunks", chunks, "--tokenizer", tokenizer, *training)[0] == 0
    models = ("--discriminator", planted / "discriminator", "--generator", generator)
    assert ctxsim("index", "--chunks", chunks, *models, "--output", tmp_path / "origin")[0] == 0
    origin = OriginSimilarity.from_pretrained(tmp_path / "origin", weights=ScoreWeights(), num_contexts=10)
    discriminator, light = origin.models.values()
    own, other = (model.tokenizer for model in (discriminator, light))  # type: ignore[attr-defined]
    assert own is origin.index.sentences.tokenizer and len(other) < len(own)
    contexts = np.array([1, 2, 11, 20])
    texts = [context for context, _ in origin.index.context_texts(contexts)]
    sentences = origin.index.texts([3, 40])
    scorer = origin.contexts.scorer
    by_index, by_text = scorer.score(sentences, origin.index.contexts(contexts)), scorer.score(sentences, texts)
    np.testing.assert_allclose(by_index, by_text, atol=1e-5)
    tokens = origin.index.contexts(contexts).for_model("light_generator").tokens(other, 1)
    first = tokens.sentences.pick(tokens.left[:1, 0]).tokens.tolist()
    assert first == other(texts[0].left[0], add_special_tokens=False)["input_ids"]
    assert np.isfinite(origin.similarity(sentences[:1], sentences[1:])).all()


def test_an_index_made_again_of_other_models(ctxsim: Run, planted: Path, tmp_path: Path) -> None:
    """In one process and one place: what is kept must be of the models that lie beside it."""
    other = Path(shutil.copytree(planted / "discriminator", tmp_path / "other"))
    weights = other / "model.safetensors"
    changed = bytearray(weights.read_bytes())
    changed[-4:] = b"\0\0\0\0"
    weights.write_bytes(changed)
    (other / "stage.json").unlink()
    words = ("index", "--chunks", planted / "chunks", "--generator", planted / "generator", "--output", tmp_path / "o")
    assert ctxsim(*words, "--discriminator", other)[0] == 0
    shutil.rmtree(tmp_path / "o")
    assert ctxsim(*words, "--discriminator", planted / "discriminator")[0] == 0
    assert (tmp_path / "o/stage.json").read_bytes() == (planted / "origin/stage.json").read_bytes()


def test_interrupted_and_resumed_gives_the_same_bytes(
    ctxsim: Run, planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_build, "ContextArrays", partial(ContextArrays, chunks_per_block=100))
    words = ("index", "--chunks", planted / "chunks", "--discriminator", planted / "discriminator")
    words = (*words, "--generator", planted / "generator", "--output")
    assert ctxsim(*words, tmp_path / "whole")[0] == 0
    run_block, calls = ContextArrays.run_block, list[str]()

    def stop_at_the_third(work: ContextArrays, name: str) -> None:
        calls.append(name)
        if len(calls) == 3:
            raise KeyboardInterrupt
        run_block(work, name)

    monkeypatch.setattr(ContextArrays, "run_block", stop_at_the_third)
    assert ctxsim(*words, tmp_path / "resumed")[0] == 130
    assert ctxsim(*words, tmp_path / "resumed")[0] == 0
    assert len(calls) == 1 + len(set(calls)) == 6, "only the block that was interrupted is made again"
    whole, resumed = (json.loads((tmp_path / name / "stage.json").read_text()) for name in ("whole", "resumed"))
    assert whole == resumed


def test_the_bytes_are_the_same_for_any_number_of_workers(
    ctxsim: Run, planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes with several blocks, and one process with one."""
    monkeypatch.setattr(segment_build, "ContextArrays", partial(ContextArrays, chunks_per_block=100))
    words = ("index", "--chunks", planted / "chunks", "--discriminator", planted / "discriminator")
    words = (*words, "--generator", planted / "generator", "--workers", "2", "--output", tmp_path / "two")
    assert ctxsim(*words)[0] == 0
    one, two = (json.loads((folder / "stage.json").read_text()) for folder in (planted / "origin", tmp_path / "two"))
    assert one == two
