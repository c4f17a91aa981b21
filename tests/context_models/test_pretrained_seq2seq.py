"""Pretrained BART and T5 as context models: scores by a naive loop, an origin made with them, bad input."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from made_up import make_text
from tiny_seq2seq import SIZES, save_seq2seq
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    BartConfig,
    BartForSequenceClassification,
    T5EncoderModel,
)

from ctxsim_hf.context_models import token_budget
from ctxsim_hf.context_models.contexts import Contexts
from ctxsim_hf.context_models.pretrained_seq2seq import scoring as module
from ctxsim_hf.context_models.pretrained_seq2seq.scoring import PretrainedSeq2SeqContextModel
from ctxsim_hf.context_models.pretrained_seq2seq.templates import TEMPLATES
from ctxsim_hf.context_models.reading_settings import ReadingSettings
from ctxsim_hf.context_models.registry import context_model_class, load_context_model
from ctxsim_hf.context_models.score_weights import ScoreWeights
from ctxsim_hf.origin.similarity import OriginSimilarity
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.chunks import Context

Run = Callable[..., tuple[int, str, str]]
TERMS = ("sentence", "left", "right")
WIDTH, MAX_TOKENS = 2, 12
TEXT = [sentence + "." for sentence in make_text(60, seed=1).replace("\n\n", " ").split(". ")]
SENTENCES = [*TEXT[:4], "a", "words " * 99]


def context_of(left: list[str], right: list[str]) -> Context:
    return Context("chunk", 0, tuple(left), "", tuple(right))


CONTEXTS = [
    context_of(left=TEXT[10:12], right=TEXT[12:14]),
    context_of(left=TEXT[14:15], right=TEXT[16:18]),
    context_of(left=TEXT[18:20], right=["b " * 40]),
    context_of(left=TEXT[20:23], right=TEXT[23:24]),  # one more than it reads
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("seq2seq")
    for kind in SIZES:
        save_seq2seq(kind, folder / kind)
        ReadingSettings(width=WIDTH, max_sentence_tokens=MAX_TOKENS).save(folder / kind)
    return folder


def scores(
    model: PretrainedSeq2SeqContextModel, term: str, sentences: list[str], contexts: list[Context]
) -> np.ndarray:
    found = Contexts.from_texts(contexts)
    return model.score(term, model.prepare_sentences(sentences), model.prepare_contexts(found))


@torch.no_grad()
def naive_score(folder: Path, term: str, sentence: str, context: Context) -> float:
    """One forward pass of the whole model, the text written out in ids and the labels shifted by the model."""
    model, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)

    def ids(*texts: str) -> list[int]:
        return [i for text in texts for i in tokenizer(" " + text, add_special_tokens=False)["input_ids"][:MAX_TOKENS]]

    left, right = context.left[-WIDTH:], context.right[:WIDTH]
    before, target, after = {
        "sentence": (ids(*left), ids(sentence), ids(*right)),
        "left": ([], ids(*left), ids(sentence, *right)),
        "right": (ids(*left, sentence), ids(*right), []),
    }[term]
    if model.config.model_type == "bart":
        source = [0, *before, tokenizer.mask_token_id, *after, 2]
        labels = [0, *before, *target, *after, 2]
        first = 1 + len(before)
    else:
        gap, end = tokenizer.convert_tokens_to_ids(["<extra_id_0>", "<extra_id_1>"])
        source = [*before, gap, *after, 1]
        labels = [gap, *target, end, 1]
        first = 1
    logits = model(input_ids=torch.tensor([source]), labels=torch.tensor([labels])).logits[0]
    counted = torch.arange(first, first + len(target))
    return float(logits.log_softmax(-1)[counted, torch.tensor(target)].mean())


@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("term", TERMS)
def test_scores_equal_a_naive_loop(folders: Path, kind: str, term: str) -> None:
    model = load_context_model(folders / kind)
    assert isinstance(model, PretrainedSeq2SeqContextModel)
    assert model.terms == TERMS and model.width == WIDTH
    expected = [[naive_score(folders / kind, term, s, context) for context in CONTEXTS] for s in SENTENCES]
    found = scores(model, term, SENTENCES, CONTEXTS)
    np.testing.assert_allclose(found, expected, atol=1e-4, rtol=0)
    assert np.std(found) > 0.01, "a tiny model that tells nothing apart would prove nothing"


@pytest.mark.parametrize("kind", ["bart", "t5"])
@pytest.mark.parametrize("term", TERMS)
def test_scores_do_not_depend_on_the_batch(
    folders: Path, kind: str, term: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = PretrainedSeq2SeqContextModel.load(folders / kind, "cpu")
    together = scores(model, term, SENTENCES, CONTEXTS)
    alone = [[scores(model, term, [s], [context])[0, 0] for context in CONTEXTS] for s in SENTENCES]
    np.testing.assert_allclose(together, alone, atol=1e-5, rtol=0)
    monkeypatch.setattr(token_budget, "TOKENS_PER_BATCH", 200)
    monkeypatch.setattr(module, "TOKENS_PER_BLOCK", 7)
    np.testing.assert_allclose(scores(model, term, SENTENCES, CONTEXTS), together, atol=1e-5, rtol=0)
    assert scores(model, term, [], CONTEXTS).shape == (0, 4) and scores(model, term, SENTENCES, []).shape == (6, 0)


def test_a_context_is_encoded_once_for_all_sentences(folders: Path) -> None:
    model = PretrainedSeq2SeqContextModel.load(folders / "bart", "cpu")
    encoded: list[int] = []
    model.model.get_encoder().register_forward_pre_hook(
        lambda _, __, named: encoded.append(len(named["input_ids"])), with_kwargs=True
    )
    scores(model, "sentence", SENTENCES, CONTEXTS)
    assert sum(encoded) == len(CONTEXTS)
    scores(model, "right", SENTENCES, CONTEXTS)
    assert sum(encoded) == len(CONTEXTS) + len(SENTENCES) * len(CONTEXTS)


@pytest.mark.parametrize("kind", ["bart", "t5"])
def test_tokens_of_parts_are_those_within_a_text(folders: Path, kind: str) -> None:
    tiny = PretrainedSeq2SeqContextModel.load(folders / kind, "cpu")
    model = PretrainedSeq2SeqContextModel(tiny.model, tiny.tokenizer)  # cuts nothing this short
    first, second = TEXT[:2]
    whole = model.tokenizer(f" {first} {second}", add_special_tokens=False)["input_ids"]
    assert np.concatenate(model.prepare_sentences([first, second])).tolist() == whole
    assert model.prepare_sentences([first])[0].tolist() == model.prepare_sentences([second, first])[1].tolist()
    if kind == "bart":
        assert model.tokenizer.mask_token_id not in model.prepare_sentences(["a <mask> b"])[0]


def test_a_side_without_a_sentence_scores_nothing(folders: Path) -> None:
    model = PretrainedSeq2SeqContextModel.load(folders / "bart", "cpu")
    context = context_of(left=[], right=TEXT[:1])
    assert scores(model, "left", SENTENCES, [context]).tolist() == [[0.0]] * len(SENTENCES)
    assert (scores(model, "right", SENTENCES, [context]) < 0).all()


def test_templates_and_registry_know_the_same_types() -> None:
    for model_type in TEMPLATES:
        assert context_model_class(model_type) is PretrainedSeq2SeqContextModel


@pytest.mark.parametrize("kind", ["bart", "t5"])
def test_an_origin_is_made_with_it(ctxsim: Run, planted: Path, tmp_path: Path, kind: str) -> None:
    texts = [json.loads(line)["text"] for line in (planted / "texts.jsonl").read_text().splitlines()[:100]]
    save_seq2seq(kind, tmp_path / kind, texts)
    # As on the Hub: the configuration alone says which marks the tokenizer has.
    (tmp_path / kind / "tokenizer_config.json").write_text('{"model_max_length": 512}')
    words = ("index", "--chunks", planted / "chunks", "--context-model", tmp_path / kind, "--background", 8)
    code, _, err = ctxsim(*words, "--output", tmp_path / "origin")
    assert code == 0, err
    shutil.rmtree(tmp_path / kind)
    weights = ScoreWeights(discriminative=0, sentence=1, left=1, right=1)
    settings = {"num_contexts": 3, "screen_chunks": 20, "background_size": 4}
    origin = OriginSimilarity.from_pretrained(tmp_path / "origin", weights=weights, **settings)
    assert list(origin.models) == [kind] and origin.models[kind].terms == TERMS
    first, second = origin.index.texts([4, 400])
    same, different = origin.similarity([first, first], [first, second])
    assert same == pytest.approx(1, abs=1e-4) and -1 <= different < 0.99
    shown = [fit.terms for fit in origin.explain(first, first).both]
    assert shown and all(tuple(terms) == TERMS for terms in shown)


def refused(folder: Path) -> str:
    with pytest.raises(UserError) as error:
        load_context_model(folder)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_bad_models_are_refused_in_one_line(folders: Path, tmp_path: Path) -> None:
    for kind in ("bart", "t5"):
        shutil.copytree(folders / kind, tmp_path / kind)
    other = BartForSequenceClassification(BartConfig.from_pretrained(folders / "bart"))
    other.save_pretrained(tmp_path / "bart")
    assert "(BartForConditionalGeneration or BartModel)" in refused(tmp_path / "bart")
    assert "but it is a BartForSequenceClassification" in refused(tmp_path / "bart")
    T5EncoderModel.from_pretrained(folders / "t5").save_pretrained(tmp_path / "t5")
    assert "but it is a T5EncoderModel" in refused(tmp_path / "t5")
    config = json.loads((folders / "t5/config.json").read_text())
    (tmp_path / "t5/config.json").write_text(json.dumps(config))
    assert "weights are missing, such as decoder." in refused(tmp_path / "t5")
    (tmp_path / "t5/model.safetensors").unlink()
    assert "expected a seq2seq language model in" in refused(tmp_path / "t5")
    del config["decoder_start_token_id"]
    shutil.copy(folders / "t5/model.safetensors", tmp_path / "t5")
    (tmp_path / "t5/config.json").write_text(json.dumps(config))
    assert "no decoder_start_token_id" in refused(tmp_path / "t5")
    (tmp_path / "t5/config.json").write_text('{"model_type": "vit"}')
    assert "no context model is known for the model type 'vit'; expected one of bart, " in refused(tmp_path / "t5")


def test_bad_tokenizers_are_refused_in_one_line(folders: Path, corpus: Path, tmp_path: Path) -> None:
    for kind in ("bart", "t5"):
        shutil.copytree(folders / kind, tmp_path / kind)
    path = tmp_path / "bart/tokenizer_config.json"
    marks = json.loads(path.read_text())
    path.write_text(json.dumps(marks | {"mask_token": None, "tokenizer_class": "TokenizersBackend"}))
    assert "the tokenizer has no mask_token; use the one" in refused(tmp_path / "bart")
    tokenizer = AutoTokenizer.from_pretrained(folders / "bart")
    size = len(tokenizer)
    tokenizer.add_tokens(["newword"])
    tokenizer.save_pretrained(tmp_path / "bart")
    message = f"the vocabularies differ: the model has {size} tokens, the tokenizer {size + 1}; use"
    assert message in refused(tmp_path / "bart")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(corpus / "tokenizer" / name, tmp_path / "t5" / name)
    assert "the tokenizer has no <extra_id_0>; use the one" in refused(tmp_path / "t5")
    (tmp_path / "t5/tokenizer.json").unlink()
    assert "expected a file tokenizer.json in" in refused(tmp_path / "t5")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('{"width": 0}', "width must be at least 1, got 0"),
        ('{"height": 2}', "unexpected keyword argument 'height'"),
        ('{"width": 2', "Expecting"),
        ("[]", "must be a mapping"),
        ('{"width": 3}', "width 3 with sentences of 64 tokens takes up to 453 tokens, but the model reads 256; lower"),
    ],
)
def test_bad_settings_are_refused_in_one_line(folders: Path, tmp_path: Path, settings: str, message: str) -> None:
    shutil.copytree(folders / "bart", tmp_path / "bart")
    (tmp_path / "bart/context_model.json").write_text(settings)
    assert message in refused(tmp_path / "bart")


def test_settings_have_defaults(tmp_path: Path) -> None:
    assert ReadingSettings.load(tmp_path) == ReadingSettings(width=1, max_sentence_tokens=64)
    (tmp_path / "context_model.json").write_text('{"width": 2}')
    assert ReadingSettings.load(tmp_path) == ReadingSettings(width=2)
