"""The arguments of every training run."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Ge, Le
from transformers.hf_argparser import HfArg

from ctxsim_hf.runtime.arguments import StageArguments
from ctxsim_hf.runtime.validation import Count, NonNegative, OneOf, Positive, Seed

SCHEDULES = ("linear", "cosine", "constant")
PRECISIONS = ("no", "fp16", "bf16")


@dataclass(kw_only=True)
class LoopArguments(StageArguments):
    """The arguments of the training loop."""

    learning_rate: Positive | None = HfArg(default=None, help="Peak learning rate of AdamW; by default the preset's.")
    weight_decay: NonNegative = HfArg(default=0.0, help="Decoupled weight decay.")
    schedule: Annotated[str, OneOf(SCHEDULES)] = HfArg(
        default="linear", help=f"Schedule of the rate after the warm-up: {', '.join(SCHEDULES)}."
    )
    warmup: Annotated[float, Ge(0), Le(1)] = HfArg(
        default=0.05, help="Share of the run in which the rate rises from 0."
    )
    max_grad_norm: Positive = HfArg(default=1.0, help="Gradients are clipped to this norm.")
    tokens_per_batch: Count = HfArg(
        default=16_384, help="Tokens in a batch of one process; lower it if memory runs out."
    )
    gradient_accumulation_steps: Count = HfArg(default=1, help="Batches of each process in one step.")
    epochs: Positive = HfArg(default=1.0, help="Passes over the training data.")
    max_steps: Count | None = HfArg(default=None, help="Stop after this many steps, whatever --epochs says.")
    max_train_minutes: Positive | None = HfArg(
        default=None,
        help="Stop after this many minutes; the number of steps is recorded, but depends on the machine.",
    )
    mixed_precision: Annotated[str, OneOf(PRECISIONS)] | None = HfArg(
        default=None, help="no, fp16 or bf16; by default as configured for accelerate."
    )
    seed: Seed = HfArg(default=0, help="Seed of everything random.")
    eval_every: Count = HfArg(
        default=1000, help="Approximate number of steps between evaluations on held-out documents."
    )
    checkpoint_every: Count = HfArg(default=500, help="Approximate number of steps between checkpoints.")
    keep_checkpoints: Count = HfArg(default=2, help="Number of checkpoints to keep.")
    log_every: Count = HfArg(
        default=10, help="Steps between reports of the loss, at which a run may also be saved or stopped."
    )
    report_to: str | None = HfArg(default=None, help="Tracker known to accelerate, e.g. tensorboard or wandb.")

    unrecorded: ClassVar[tuple[str, ...]] = (
        *StageArguments.unrecorded,
        "checkpoint_every",
        "keep_checkpoints",
        "report_to",
    )
