"""The arguments of `ctxsim train context-model`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from annotated_types import Ge
from transformers.hf_argparser import HfArg

from ctxsim_hf.context_models.registry import describe_context_model
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.fetch import hub_id
from ctxsim_hf.runtime.validation import Count, Positive
from ctxsim_hf.text.chunks import describe_chunks
from ctxsim_hf.train.loop_arguments import LoopArguments

# The default of transformers' Trainer; LoRA wants about ten times the rate of full training (Schulman et al., LoRA
# Without Regret, 2025).
LEARNING_RATE, LORA_LEARNING_RATE = 5e-5, 5e-4


@dataclass(kw_only=True)
class ContextModelArguments(LoopArguments):
    init: str = HfArg(
        help="Causal language model to start from: its folder, a GGUF file, package:NAME/PATH or its id on the Hub."
    )
    chunks: str = HfArg(help="Folder made by ctxsim chunk.")
    lora_rank: Count | None = HfArg(
        default=None, help="Train matrices of this rank beside the frozen weights (LoRA); by default all weights."
    )
    lora_alpha: Positive | None = HfArg(
        default=None, help="LoRA: the update is scaled by this over the rank; by default twice the rank."
    )
    max_tokens: Annotated[int, Ge(2)] = HfArg(
        default=256, help="Tokens of a training row: whole sentences of a chunk; a longer sentence is cut."
    )
    eval_contexts: Count = HfArg(default=300, help="Held-out contexts to evaluate on, before and after.")
    learning_rate: Positive | None = HfArg(
        default=None, help=f"Peak learning rate of AdamW; by default {LEARNING_RATE}, with LoRA {LORA_LEARNING_RATE}."
    )
    tokens_per_batch: Count = HfArg(
        default=2048, help="Tokens in a batch of one process; lower it if memory runs out."
    )

    unrecorded: ClassVar[tuple[str, ...]] = (*LoopArguments.unrecorded, "init", "chunks")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lora_alpha is not None and self.lora_rank is None:
            raise UserError("--lora-alpha scales the update of LoRA; give a --lora-rank too")
        if self.tokens_per_batch < self.max_tokens:
            raise UserError(
                f"--tokens-per-batch {self.tokens_per_batch} is less than the {self.max_tokens} of --max-tokens; "
                "raise the one or lower the other"
            )
        if self.lora_rank is not None and self.lora_alpha is None:
            self.lora_alpha = 2.0 * self.lora_rank
        if self.learning_rate is None:
            self.learning_rate = LEARNING_RATE if self.lora_rank is None else LORA_LEARNING_RATE

    def inputs(self, start: Path) -> dict[str, Any]:
        """Describe what is read, where `start` is the folder or the GGUF file that `init` stands for."""
        return {"chunks": describe_chunks(self.chunks), "init": describe_context_model(start) | hub_id(self.init)}
