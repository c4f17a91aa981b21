"""Tiny random BART and T5 with tokenizers of their own kind, saved as anybody would save them."""

import json
from pathlib import Path
from typing import Any

import torch
from made_up import make_text
from tokenizers import ByteLevelBPETokenizer, SentencePieceUnigramTokenizer
from transformers import AutoConfig, AutoModelForSeq2SeqLM, BartTokenizer, T5Tokenizer, TokenizersBackend

T5_SIZES = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2, "decoder_start_token_id": 0}
BART_SIZES = {
    "d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_position_embeddings": 256,
    "init_std": 0.3,  # small weights would make all scores alike
}  # fmt: skip
SIZES: dict[str, dict[str, Any]] = {
    "bart": BART_SIZES,
    "t5": T5_SIZES,
    "t5-1.1": T5_SIZES | {"tie_word_embeddings": False, "feed_forward_proj": "gated-gelu"},
    "mt5": T5_SIZES,
    "umt5": T5_SIZES,
}


def save_seq2seq(kind: str, folder: Path, texts: list[str] | None = None) -> Path:
    """Save a model and its tokenizer, trained on these texts."""
    texts = texts or make_text(300, seed=0).split("\n\n")
    tokenizer = _bart_tokenizer(texts) if kind == "bart" else _t5_tokenizer(texts)
    torch.manual_seed(0)
    # T5's embeddings are padded, too: its models have more ids than their tokenizers.
    size = len(tokenizer) if kind == "bart" else len(tokenizer) + 28
    config = AutoConfig.for_model(kind.partition("-")[0], vocab_size=size, **SIZES[kind])
    AutoModelForSeq2SeqLM.from_config(config).save_pretrained(folder)
    if kind == "t5-1.1":  # as it is on the Hub, where this says that states are not scaled
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"tie_word_embeddings": False}))
    tokenizer.save_pretrained(folder)
    return folder


def _bart_tokenizer(texts: list[str]) -> TokenizersBackend:
    trainer = ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trainer.train_from_iterator(texts, vocab_size=500, special_tokens=special, show_progress=False)
    model = json.loads(trainer.to_str())["model"]
    return BartTokenizer(vocab=model["vocab"], merges=[tuple(merge) for merge in model["merges"]])


def _t5_tokenizer(texts: list[str]) -> TokenizersBackend:
    trainer = SentencePieceUnigramTokenizer()
    special = ["<pad>", "</s>", "<unk>"]
    trainer.train_from_iterator(texts, vocab_size=400, special_tokens=special, unk_token="<unk>", show_progress=False)
    pieces = [(piece, score) for piece, score in json.loads(trainer.to_str())["model"]["vocab"]]
    return T5Tokenizer(vocab=[*pieces, *((f"<extra_id_{number}>", 0.0) for number in range(99, -1, -1))])
