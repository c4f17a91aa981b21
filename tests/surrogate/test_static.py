"""Static surrogates: from every start, by the same loop, opened by everything with equal vectors."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer
from tiny_language_model import save_tiny_llama
from topic_pairs import sentences_by_topic, write_pairs
from transformers import AutoModel

from ctxsim_hf import SentenceEncoder, SurrogateModel
from ctxsim_hf.runtime.errors import UserError

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def pairs(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pairs(corpus, tmp_path_factory.mktemp("topics") / "pairs", train_groups=4)


def words(pairs: Path, output: Path, *flags: object) -> list[str]:
    fixed = ["train", "surrogate", "--kind", "static", "--pairs", pairs, "--output", output, "--keep", "last"]
    return [str(word) for word in [*fixed, "--tokens-per-batch", 600, "--max-steps", 4, *flags]]


@pytest.fixture(scope="module")
def trained(corpus: Path, pairs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A static surrogate from the word table of a language model."""
    from ctxsim_hf.cli import main

    folder = tmp_path_factory.mktemp("static")
    model = save_tiny_llama(folder / "llama")
    flags = ["--token-embeddings", model, "--tokenizer", corpus / "tokenizer", "--hidden-size", 40]
    assert main(words(pairs, folder / "static", *flags)) == 0
    return folder / "static"


def test_every_way_of_loading(trained: Path, corpus: Path) -> None:
    sentences = [*(topic[0] for topic in sentences_by_topic(corpus)), "", "words " * 99]
    found = np.asarray(SentenceEncoder.from_pretrained(trained).encode(sentences))
    np.testing.assert_allclose(SentenceTransformer(str(trained), device="cpu").encode(sentences), found, atol=1e-5)
    assert found.shape == (len(sentences), 40) and not found[-2].any()
    for model in (SurrogateModel.from_pretrained(trained), AutoModel.from_pretrained(trained)):
        assert type(model) is SurrogateModel
        tokenizer = SentenceEncoder.from_pretrained(trained).tokenizer
        (ids,) = tokenizer(sentences[:1], add_special_tokens=False)["input_ids"]
        with torch.no_grad():
            vector = model(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids))).sentence_embedding[0]
        np.testing.assert_allclose(vector.numpy(), found[0], atol=1e-5)
    assert json.loads((trained / "stage.json").read_text())["arguments"]["kind"] == "static"


def test_many_threads_get_what_one_gets(trained: Path, corpus: Path) -> None:
    sentences = [sentence for topic in sentences_by_topic(corpus) for sentence in topic[:5]]
    encoder = SentenceEncoder.from_pretrained(trained)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda start: encoder.encode(sentences[start : start + 3]), range(len(sentences) - 3)))
    whole = np.asarray(SentenceEncoder.from_pretrained(trained).encode(sentences))
    for start, vectors in enumerate(found):
        np.testing.assert_allclose(np.asarray(vectors), whole[start : start + 3], atol=1e-6)


def test_it_goes_on_from_a_static_model_and_from_model2vec(
    ctxsim: Run, trained: Path, pairs: Path, tmp_path: Path
) -> None:
    table = SurrogateModel.from_pretrained(trained).encoder.embedding.weight.detach()
    theirs = tmp_path / "model2vec"
    theirs.mkdir()
    save_file({"embeddings": table.contiguous()}, theirs / "model.safetensors")
    (theirs / "tokenizer.json").write_text((trained / "tokenizer.json").read_text())
    kinds = ("StaticEmbedding", "Normalize")
    rows = [{"idx": i, "path": f"{i}", "type": f"sentence_transformers.models.{kind}"} for i, kind in enumerate(kinds)]
    (theirs / "modules.json").write_text(json.dumps(rows))
    for start in (trained, theirs):
        command = [*words(pairs, tmp_path / f"from-{start.name}", "--init", start, "--learning-rate", 1e-9)]
        code, _, err = ctxsim(*(word for word in command if word not in ("--kind", "static")))
        assert code == 0, err
        found = SentenceEncoder.from_pretrained(tmp_path / f"from-{start.name}").encode(["some words"])
        np.testing.assert_allclose(found, SentenceEncoder.from_pretrained(start).encode(["some words"]), atol=1e-4)


def test_it_starts_from_nothing_and_searches(ctxsim: Run, corpus: Path, pairs: Path, tmp_path: Path) -> None:
    flags = ["--tokenizer", corpus / "tokenizer", "--hidden-size", 16]
    assert ctxsim(*words(pairs, tmp_path / "out", *flags))[0] == 0
    sentences = [topic[0] for topic in sentences_by_topic(corpus)]
    encoder = SentenceEncoder.from_pretrained(tmp_path / "out")
    assert encoder.similarity(sentences, sentences) == pytest.approx(1, abs=1e-5)


def test_what_a_static_surrogate_has_not(
    ctxsim: Run, trained: Path, folder: Path, pairs: Path, tmp_path: Path
) -> None:
    code, _, err = ctxsim("export", "--surrogate", str(trained), "--output", str(tmp_path / "onnx"))
    assert code == 2 and "is a static surrogate, which needs no export" in err
    code, _, err = ctxsim(*words(pairs, tmp_path / "out", "--init", folder))
    assert code == 2 and "--kind static starts from" in err
    code, _, err = ctxsim(*words(pairs, tmp_path / "out", "--init", trained, "--layers", 2))
    assert code == 2 and "leave out --layers" in err
    (tmp_path / "dense").mkdir()
    for name in ("model.safetensors", "tokenizer.json"):
        (tmp_path / "dense" / name).write_bytes((trained / name).read_bytes())
    rows = [{"path": "", "type": f"sentence_transformers.models.{kind}"} for kind in ("StaticEmbedding", "Dense")]
    (tmp_path / "dense/modules.json").write_text(json.dumps(rows))
    with pytest.raises(UserError, match="found StaticEmbedding, Dense; open it with sentence-transformers"):
        SentenceEncoder.from_pretrained(tmp_path / "dense")


def test_whole_words_as_the_vocabulary(ctxsim: Run, corpus: Path, tmp_path: Path) -> None:
    flags = ["--tokens", "words", "--vocab-size", 1200, "--lowercase", "--output", tmp_path / "words"]
    code, _, err = ctxsim(*map(str, ["train-tokenizer", "--chunks", corpus / "chunks", *flags]))
    assert code == 0, err
    from ctxsim_hf.text.fast_tokenizer import open_tokenizer

    tokenizer = open_tokenizer(tmp_path / "words")
    sentence = sentences_by_topic(corpus)[0][0]
    tokens = tokenizer.tokenize(sentence)
    assert "<unk>" not in tokens and sum(token.startswith("##") for token in tokens) < len(tokens) / 2
    assert tokenizer.convert_ids_to_tokens([0, 1, 2, 3]) == ["<s>", "<pad>", "</s>", "<unk>"]
    assert any(token in sentence.lower().split() for token in tokens)
