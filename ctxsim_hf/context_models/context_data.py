"""What training the discriminator and training a generator have in common: chunks, a tokenizer, held-out contexts."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from transformers import AutoTokenizer, TokenizersBackend
from transformers.hf_argparser import HfArg

from ctxsim_hf.context_models.collators import SpecialIds
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import digest_file
from ctxsim_hf.text.chunks import describe_chunks
from ctxsim_hf.text.tokenized import TokenizedChunks, tokenize_chunks
from ctxsim_hf.train.loop_arguments import LoopArguments

EVALUATION_CONTEXTS = 4000


@dataclass(kw_only=True)
class ContextTrainingArguments(LoopArguments):
    chunks: str = HfArg(help="Folder made by ctxsim chunk.")
    tokenizer: str = HfArg(help="Folder made by ctxsim train-tokenizer, or any folder with a fast tokenizer.")
    preset: str | None = HfArg(default="light", help="Sizes for what is not set: tiny, light, small, base, large.")
    width: int | None = HfArg(default=None, help="Sentences on each side of a context; by default the preset's.")
    max_sentence_tokens: int = HfArg(default=64, help="A longer sentence is cut.")

    unrecorded: ClassVar[tuple[str, ...]] = (*LoopArguments.unrecorded, "chunks", "tokenizer")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_sentence_tokens < 1:
            raise UserError(f"--max_sentence_tokens must be at least 1, got {self.max_sentence_tokens}")

    def inputs(self) -> dict[str, Any]:
        tokenizer_file = Path(self.tokenizer) / "tokenizer.json"
        if not tokenizer_file.exists():
            raise UserError(f"no tokenizer in {self.tokenizer!r}: expected a file tokenizer.json there")
        return {"chunks": describe_chunks(self.chunks), "tokenizer": {"xxh3_128": digest_file(tokenizer_file)}}


@dataclass(frozen=True)
class ContextData:
    """Tokenised chunks of both splits."""

    tokenizer: TokenizersBackend
    train: TokenizedChunks
    held_out: TokenizedChunks

    @classmethod
    def open(cls, arguments: ContextTrainingArguments) -> "ContextData":
        tokenizer = AutoTokenizer.from_pretrained(arguments.tokenizer)
        splits = (tokenize_chunks(arguments.chunks, arguments.tokenizer, split) for split in ("train", "held_out"))
        return cls(tokenizer, *splits)

    @property
    def special(self) -> SpecialIds:
        return SpecialIds(self.tokenizer.bos_token_id, self.tokenizer.pad_token_id, self.tokenizer.eos_token_id)

    def evaluation_contexts(self) -> np.ndarray:
        """The contexts of so many random held-out chunks, always the same."""
        rng = np.random.default_rng(0)
        chunks = rng.permutation(len(self.held_out.chunk_starts) - 1)
        return self.held_out.contexts_of(chunks)[:EVALUATION_CONTEXTS]


def check_vocabulary(model_size: int, tokenizer: TokenizersBackend, what: str) -> None:
    if model_size != len(tokenizer):
        raise UserError(
            f"the vocabularies differ: {what} has {model_size} tokens, the tokenizer {len(tokenizer)}; "
            "use the tokenizer the model was made with"
        )
