"""A surrogate of random weights with a tokenizer, for tests that ask how it is run rather than what it knows."""

import random
from pathlib import Path

import torch
from made_up import make_text
from transformers import PreTrainedModel, RobertaConfig

from ctxsim_hf.encoder.modeling_surrogate import SurrogateModel
from ctxsim_hf.text.tokenizer import build_normalizer, build_tokenizer, save_tokenizer, train_sentencepiece

MAX_TOKENS = 40


def tiny_config(vocab_size: int = 60) -> RobertaConfig:
    return RobertaConfig(
        vocab_size=vocab_size,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=MAX_TOKENS + 2,
        type_vocab_size=1,
        initializer_range=0.3,  # small weights would make all vectors alike
    )


def tiny_model(kind: type[PreTrainedModel] = SurrogateModel, vocab_size: int = 60) -> PreTrainedModel:
    torch.manual_seed(0)
    return kind(tiny_config(vocab_size)).eval()


def save_tiny(folder: Path, kind: type[PreTrainedModel] = SurrogateModel) -> Path:
    """A folder as training leaves it: a model and its tokenizer."""
    normalizer = build_normalizer(lowercase=True)
    sentences = [normalizer.normalize_str(sentence) for sentence in make_text(300, seed=0).split("\n\n")]
    tokenizer = build_tokenizer(train_sentencepiece(sentences, 600), normalizer)
    tiny_model(kind, tokenizer.get_vocab_size()).save_pretrained(folder)
    save_tokenizer(tokenizer, folder, max_length=512)
    return folder


def mixed_sentences(number: int) -> list[str]:
    """Different sentences of two to some thirty tokens, in no order."""
    words = make_text(300, seed=0).split()
    chooser = random.Random(0)
    return [f"{i} {' '.join(chooser.choices(words, k=chooser.randint(0, 9)))}" for i in range(number)]
