"""Configurations refuse what makes no sense, in words, and the Auto classes open saved models in a fresh process."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from huggingface_hub.errors import StrictDataclassClassValidationError, StrictDataclassFieldValidationError

from ctxsim_hf.models import (
    ContextDiscriminatorConfig,
    ContextDiscriminatorModel,
    ContextGeneratorConfig,
    ContextGeneratorModel,
    LightContextGeneratorConfig,
    LightContextGeneratorModel,
    register_auto_classes,
)

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
def test_wrong_meaning_is_refused_in_words(config, values, words):
    with pytest.raises(StrictDataclassClassValidationError, match=words):
        config(**values)


@pytest.mark.parametrize("config", [DISCRIMINATOR, GENERATOR, LIGHT])
def test_wrong_type_is_refused(config):
    with pytest.raises(StrictDataclassFieldValidationError, match="vocab_size"):
        config(vocab_size="many")


@pytest.mark.parametrize("config", [DISCRIMINATOR, GENERATOR, LIGHT])
def test_special_ids_are_those_of_roberta(config):
    special = config()
    assert (special.bos_token_id, special.pad_token_id, special.eos_token_id) == (0, 1, 2)


def test_the_paper_sizes_are_the_defaults():
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
def test_other_preset_sizes_can_be_built(config):
    with torch.device("meta"):
        assert ContextGeneratorModel(config).lm_head.out_features == config.vocab_size


def test_auto_classes_open_saved_models_in_a_fresh_process(tmp_path: Path):
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
    for name, model in models.items():
        model.save_pretrained(tmp_path / name)
    program = """
import sys
from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM
from ctxsim_hf.models import register_auto_classes
register_auto_classes(); register_auto_classes()
autos = [AutoModel] * 3 + [AutoModelForSeq2SeqLM]
for auto, name in zip(autos, ["discriminator", "light", "generator", "generator"]):
    model = auto.from_pretrained(f"{sys.argv[1]}/{name}")
    total = sum(float(p.detach().double().abs().sum()) for p in model.parameters())
    print(type(model).__name__, AutoConfig.from_pretrained(f"{sys.argv[1]}/{name}").model_type, repr(total))
"""
    root = Path(__file__).parents[2]
    run = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, cwd=root, check=True
    )
    expected = []
    for name in ("discriminator", "light", "generator", "generator"):
        model = models[name]
        total = sum(float(p.detach().double().abs().sum()) for p in model.parameters())
        expected.append(f"{type(model).__name__} {model.config.model_type} {total!r}")
    assert run.stdout.split("\n")[:4] == expected


def test_registering_twice_changes_nothing():
    register_auto_classes()
    register_auto_classes()
