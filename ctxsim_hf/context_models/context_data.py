"""The arguments and data that training the discriminator and training a generator have in common."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from transformers import TokenizersBackend
from transformers.hf_argparser import HfArg

from ctxsim_hf.context_models.sentence_tensors import SpecialIds
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import digest_file
from ctxsim_hf.runtime.presets import Preset
from ctxsim_hf.runtime.pretrained import open_auto_tokenizer
from ctxsim_hf.runtime.validation import Count
from ctxsim_hf.text.chunks import describe_chunks
from ctxsim_hf.text.tokenized import TokenizedChunks, find_tokenizer_file, tokenize_chunks
from ctxsim_hf.train.loop_arguments import LoopArguments

EVALUATION_CONTEXTS = 4000


@dataclass(kw_only=True)
class ContextTrainingArguments(LoopArguments):
    """The arguments of training a context model."""

    chunks: str = HfArg(help="Folder made by ctxsim chunk.")
    tokenizer: str = HfArg(help="Folder made by ctxsim train-tokenizer, or any folder with a fast tokenizer.")
    preset: Preset | None = HfArg(default="light", help="Default sizes: tiny, light, small, base or large.")
    width: Count | None = HfArg(default=None, help="Sentences on each side of a context; by default the preset's.")
    max_sentence_tokens: Count = HfArg(default=64, help="Longer sentences are truncated.")

    unrecorded: ClassVar[tuple[str, ...]] = (*LoopArguments.unrecorded, "chunks", "tokenizer")
    marks: ClassVar[tuple[str, ...]]  # special tokens that the model cannot do without

    def inputs(self) -> dict[str, Any]:
        """Describe the chunks and the tokenizer for stage.json."""
        tokenizer = {"xxh3_128": digest_file(find_tokenizer_file(self.tokenizer))}
        return {"chunks": describe_chunks(self.chunks), "tokenizer": tokenizer}


@dataclass(frozen=True)
class ContextData:
    """The tokenised chunks of both splits, and their tokenizer."""

    tokenizer: TokenizersBackend
    train: TokenizedChunks
    held_out: TokenizedChunks

    @classmethod
    def open(cls, arguments: ContextTrainingArguments) -> "ContextData":
        """Tokenise the chunks, or find them in the cache; refuse a tokenizer that lacks marks."""
        tokenizer = open_auto_tokenizer(arguments.tokenizer)
        _check_marks(tokenizer, arguments)
        splits = (tokenize_chunks(arguments.chunks, arguments.tokenizer, split) for split in ("train", "held_out"))
        return cls(tokenizer, *splits)

    @property
    def special(self) -> SpecialIds:
        return SpecialIds.of(self.tokenizer)

    def evaluation_contexts(self) -> np.ndarray:
        """Return the contexts of random held-out chunks, the same on every call."""
        chunks = np.random.default_rng(0).permutation(self.held_out.num_chunks)
        return self.held_out.contexts_of(chunks)[:EVALUATION_CONTEXTS]


def check_vocabulary(model_size: int, tokenizer: TokenizersBackend, what: str) -> None:
    """Refuse a tokenizer whose vocabulary is not that of the model; the error calls the model `what`."""
    if model_size != len(tokenizer):
        raise UserError(
            f"expected a tokenizer of {model_size} tokens for {what}, got one of {len(tokenizer)}; "
            "use the tokenizer that the model was trained with"
        )


def _check_marks(tokenizer: TokenizersBackend, arguments: ContextTrainingArguments) -> None:
    """Refuse a tokenizer without the special tokens of the model."""
    if missing := [name for name in arguments.marks if getattr(tokenizer, name) is None]:
        raise UserError(
            f"this model needs a tokenizer with {', '.join(arguments.marks)}, that in {arguments.tokenizer!r} has no "
            f"{', '.join(missing)}; name another with --tokenizer"
        )
