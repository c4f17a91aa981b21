"""A tiny random Llama with a small byte-level tokenizer, as a folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import LlamaConfig, LlamaForCausalLM, TokenizersBackend

TEXT = [
    "A cat sat there.",
    "It rained all day in the old house.",
    'This sentence: "The dog barked." means in one word: "',
    "Nobody slept, so we stayed and left in the evening.",
]


def save_tiny_llama(
    folder: Path, seed: int = 0, text: Sequence[str] = TEXT, vocab_size: int = 400, initializer_range: float = 0.3
) -> Path:
    """Save a model of two layers; it begins a text with `<s>`, as Llama does. By default its weights are so large that
    what it says is far from uniform, and mistakes show; a model that is to learn wants smaller ones."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=["<unk>", "<s>", "</s>"], initial_alphabet=alphabet
    )
    tokenizer.train_from_iterator(text, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    backend = TokenizersBackend(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>")
    backend.save_pretrained(folder)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(backend),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        initializer_range=initializer_range,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def index_tiny_llama(chunks: Path, folder: Path, **model: Any) -> Path:
    """Make an origin of chunks whose one context model is a tiny Llama; more arguments are those of
    `save_tiny_llama`."""
    from ctxsim_hf.cli import main

    saved = save_tiny_llama(folder / "model", **model)
    words = ["index", "--chunks", chunks, "--context-model", saved, "--background", 40, "--output", folder / "origin"]
    assert main([str(word) for word in words]) == 0
    return folder / "origin"
