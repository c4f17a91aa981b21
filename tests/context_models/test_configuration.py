"""Configurations refuse what makes no sense, in words, and the Auto classes open saved models in a fresh process."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub.errors import StrictDataclassClassValidationError, StrictDataclassFieldValidationError
from transformers import PreTrainedConfig

from ctxsim_hf import (
    ContextDiscriminatorConfig,
    ContextDiscriminatorModel,
    ContextGeneratorConfig,
    ContextGeneratorModel,
    LightContextGeneratorConfig,
    LightContextGeneratorModel,
)
from ctxsim_hf.registration import register_auto_classes

DISCRIMINATOR, GENERATOR, LIGHT = ContextDiscriminatorConfig, ContextGeneratorConfig, LightContextGeneratorConfig


@pytest.mark.parametrize(
    ("config", "values", "words"),
    [
        (DISCRIMINATOR, {"head": "conv"}, "`head` must be one of 'mlp', 'linear', got 'conv'"),
        (DISCRIMINATOR, {"hidden_size": 0}, "`hidden_size` must be at least 1, got 0"),
        (DISCRIMINATOR, {"dropout": 1}, "`dropout` must be at least 0 and below 1, got 1"),
        (DISCRIMINATOR, {"pad_token_id": 9, "vocab_size": 8}, "`pad_token_id` must be an id from 0 to .* = 7, got 9"),
        (GENERATOR, {"direction": "up"}, "`direction` must be one of 'sentence', 'left', 'right', 'all', got 'up'"),
        (GENERATOR, {"max_sentences": 2}, "`max_sentences` must be at least 3, got 2"),
        (GENERATOR, {"d_model": 30}, "`d_model` must be divisible by `encoder_attention_heads`, got 30 and 16"),
        (LIGHT, {"num_sampled": -1}, "`num_sampled` must be at least 0, got -1"),
        (LIGHT, {"sif_smoothing": 0}, "`sif_smoothing` must be above 0, got 0"),
    ],
)
def test_wrong_meaning_is_refused_in_words(config: type[PreTrainedConfig], values: dict[str, Any], words: str) -> None:
    with pytest.raises(StrictDataclassClassValidationError, match=words):
        config(**values)


@pytest.mark.parametrize("config", [DISCRIMINATOR, GENERATOR, LIGHT])
def test_wrong_type_is_refused(config: type[PreTrainedConfig]) -> None:
    with pytest.raises(StrictDataclassFieldValidationError, match="vocab_size"):
        config(vocab_size="many")


@pytest.mark.parametrize("config", [DISCRIMINATOR, GENERATOR, LIGHT])
def test_special_ids_are_those_of_roberta(config: type[PreTrainedConfig]) -> None:
    special = config()
    assert (special.bos_token_id, special.pad_token_id, special.eos_token_id) == (0, 1, 2)


def test_the_paper_sizes_are_the_defaults() -> None:
    with torch.device("meta"):
        generator = ContextGeneratorModel(GENERATOR())
        discriminator = ContextDiscriminatorModel(DISCRIMINATOR())
        light = LightContextGeneratorModel(LIGHT())
    layers = generator.model.encoder.layers, generator.model.decoder.layers
    assert [len(side) for side in layers] == [6, 6]
    assert generator.config.d_model == 1024 and layers[0][0].fc1.out_features == 4096
    assert discriminator.forward_lstm.hidden_size == 300
    assert light.output_embeddings.weight.shape == (16000, 256)


@pytest.mark.parametrize(
    "config",
    [
        GENERATOR(vocab_size=2000, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
                  decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64, max_sentences=3),
        GENERATOR(vocab_size=8000, d_model=192, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                  decoder_attention_heads=4, encoder_ffn_dim=768, decoder_ffn_dim=768, max_sentences=3),
        GENERATOR(vocab_size=32000, d_model=512, encoder_attention_heads=8, decoder_attention_heads=8,
                  encoder_ffn_dim=2048, decoder_ffn_dim=2048),
    ],
)  # fmt: skip
def test_other_preset_sizes_can_be_built(config: ContextGeneratorConfig) -> None:
    with torch.device("meta"):
        assert ContextGeneratorModel(config).lm_head.out_features == config.vocab_size


FRESH_PROCESS = """
import sys
import torch
from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM
import ctxsim_hf
for name, (inputs, expected) in torch.load(sys.argv[1] + "/expected.pt").items():
    path = f"{sys.argv[1]}/{name}"
    for auto in [AutoModel] + [AutoModelForSeq2SeqLM] * (name == "generator"):
        model = auto.from_pretrained(path).eval()
        same = torch.allclose(model(**inputs).loss, expected, rtol=0, atol=1e-6)
        print(auto.__name__, AutoConfig.from_pretrained(path).model_type, type(model).__name__, same)
"""


def test_auto_classes_open_saved_models_in_a_fresh_process(tmp_path: Path) -> None:
    torch.manual_seed(0)
    sizes = {"vocab_size": 20, "hidden_size": 4}
    models = {
        "discriminator": ContextDiscriminatorModel(DISCRIMINATOR(embedding_size=4, head_size=3, **sizes)),
        "light": LightContextGeneratorModel(LIGHT(**sizes)),
        "generator": ContextGeneratorModel(
            GENERATOR(vocab_size=20, d_model=8, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
                      decoder_attention_heads=2, encoder_ffn_dim=8, decoder_ffn_dim=8, max_position_embeddings=16)
        ),
    }  # fmt: skip
    ids, side = torch.randint(4, 20, (3, 5)), torch.tensor([[0], [-1]])
    tokens = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    places = {"left_index": side, "sentence_index": torch.tensor([1, 2]), "right_index": side}
    inputs = {
        "discriminator": {**tokens, **places, "labels": torch.tensor([1, 0])},
        "light": {**tokens, **places},
        "generator": {**tokens, "sentence_ids": torch.zeros_like(ids), "labels": ids},
    }
    expected = {}
    for name, model in models.items():
        for parameter in model.parameters():  # nothing that a new model would have by itself
            parameter.data.normal_()
        model.eval().save_pretrained(tmp_path / name)
        expected[name] = inputs[name], model(**inputs[name]).loss.detach()
    torch.save(expected, tmp_path / "expected.pt")
    root = Path(__file__).parents[2]
    run = subprocess.run(
        [sys.executable, "-c", FRESH_PROCESS, str(tmp_path)], capture_output=True, text=True, cwd=root, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        "AutoModel ctxsim_discriminator ContextDiscriminatorModel True",
        "AutoModel ctxsim_light_generator LightContextGeneratorModel True",
        "AutoModel ctxsim_generator ContextGeneratorModel True",
        "AutoModelForSeq2SeqLM ctxsim_generator ContextGeneratorModel True",
    ]


def test_registering_twice_changes_nothing() -> None:
    register_auto_classes()
    register_auto_classes()
