"""Transformers as baselines: pooling and BERTScore by a second road, whatever the batch."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_surrogate import mixed_sentences, save_tiny
from transformers import AutoModel, AutoTokenizer, BertConfig, DPRConfig, DPRContextEncoder, DPRQuestionEncoder

from ctxsim_hf.evaluation.transformer_states import TransformerStates
from ctxsim_hf.runtime.errors import UserError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("tiny"))


def states_one_by_one(folder: Path, sentence: str, layer: int) -> torch.Tensor:
    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    with torch.inference_mode():
        inputs = tokenizer([sentence], return_tensors="pt", truncation=True, max_length=40)
        return model(**inputs, output_hidden_states=True).hidden_states[layer][0]


def test_pooling(folder: Path) -> None:
    sentences = mixed_sentences(70)  # more than one batch
    states = TransformerStates(str(folder))
    mean, first = states.encode(sentences, "mean"), states.encode(sentences, "cls")
    for row in (0, 7, 69):
        expected = states_one_by_one(folder, sentences[row], -1).numpy()
        assert mean[row] == pytest.approx(expected.mean(axis=0), abs=1e-5)
        assert first[row] == pytest.approx(expected[0], abs=1e-5)


def test_bertscore(folder: Path) -> None:
    sentences = mixed_sentences(6)
    states = TransformerStates(str(folder))
    scores = states.bertscore(sentences[:3], sentences[3:])
    for score, one, other in zip(scores, sentences[:3], sentences[3:], strict=True):
        # Layer 2 of 2, since 0.75 of it is 1.5; the marks at both ends left out; token by token.
        first, second = (states_one_by_one(folder, sentence, 2)[1:-1] for sentence in (one, other))
        cosines = np.array([[float(torch.cosine_similarity(a, b, dim=0)) for b in second] for a in first])
        precision, recall = cosines.max(axis=1).mean(), cosines.max(axis=0).mean()
        assert score == pytest.approx(2 * precision * recall / (precision + recall), abs=1e-3)  # half precision
    assert states.bertscore(["same text", ""], ["same text", "other"]) == pytest.approx([1, 0], abs=1e-3)


def test_dpr(folder: Path, tmp_path: Path) -> None:
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = DPRConfig(**size, vocab_size=len(AutoTokenizer.from_pretrained(folder)))
    for kind in (DPRQuestionEncoder, DPRContextEncoder):
        kind(config).save_pretrained(tmp_path / kind.__name__)
        AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path / kind.__name__)
    question = TransformerStates(str(tmp_path / "DPRQuestionEncoder"))
    inputs = question.tokenizer(["a word"], return_tensors="pt")
    with torch.inference_mode():
        expected = question.model(**inputs).pooler_output[0]
    assert question.encode(["a word"], "cls")[0] == pytest.approx(expected.numpy(), abs=1e-5)
    with pytest.raises(UserError, match=r"lacks .* weights of DPRQuestionEncoder"):  # AutoModel knows no other
        TransformerStates(str(tmp_path / "DPRContextEncoder"))


def test_models_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="expected a transformer and its tokenizer in 'no/model'"):
        TransformerStates("no/model")
    BertConfig().save_pretrained(tmp_path)
    with pytest.raises(UserError, match="expected a transformer and its tokenizer"):
        TransformerStates(str(tmp_path))
