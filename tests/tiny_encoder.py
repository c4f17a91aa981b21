"""Plain encoders of many kinds with random weights, as anybody would save them."""

from pathlib import Path
from typing import Any

import torch
from made_up import make_text
from tokenizers import BertWordPieceTokenizer, Tokenizer
from tokenizers.processors import TemplateProcessing
from transformers import AutoConfig, AutoModel, TokenizersBackend

KINDS = ("bert", "distilbert", "modernbert", "mpnet", "xlm-roberta", "deberta-v2", "electra")
MAX_TOKENS = 40
AFTER_PAD = ("mpnet", "xlm-roberta")


def make_tokenizer(kind: str, marks: bool = True) -> TokenizersBackend:
    """WordPiece, with `[CLS] ... [SEP]` or nothing around a sentence; the pad id is 0 or 1, as each kind has it."""
    special = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"]
    if kind in AFTER_PAD:
        special[:2] = special[1::-1]
    trainer = BertWordPieceTokenizer()
    texts = make_text(300, seed=0).split("\n\n")
    trainer.train_from_iterator(texts, vocab_size=400, special_tokens=special, show_progress=False)
    tokenizer = Tokenizer.from_str(trainer.to_str())
    template = ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1") if marks else ("$A", "$A $B")
    ids = [(mark, special.index(mark)) for mark in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(single=template[0], pair=template[1], special_tokens=ids)
    names = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    tokens = {f"{name}_token": token for name, token in names.items()}
    return TokenizersBackend(tokenizer_object=tokenizer, **tokens, model_input_names=["input_ids", "attention_mask"])


def tiny_config(kind: str, tokenizer: TokenizersBackend) -> Any:
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    if kind == "distilbert":
        sizes = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32}
    if kind == "electra":
        sizes["embedding_size"] = 8
    marks = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("pad", "cls", "sep")}
    positions = MAX_TOKENS + (tokenizer.pad_token_id + 1 if kind in AFTER_PAD else 0)
    return AutoConfig.for_model(
        kind,
        vocab_size=len(tokenizer),
        max_position_embeddings=positions,
        initializer_range=0.3,  # small weights would make all vectors alike
        **sizes,
        **marks,
    )


def save_encoder(folder: Path, kind: str) -> Path:
    """Save a model of two layers and its tokenizer."""
    tokenizer = make_tokenizer(kind)
    torch.manual_seed(0)
    AutoModel.from_config(tiny_config(kind, tokenizer)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
