"""The arguments every training run has."""

from dataclasses import dataclass
from typing import ClassVar

from transformers.hf_argparser import HfArg

from ctxsim_hf.runtime.arguments import StageArguments
from ctxsim_hf.runtime.errors import UserError

SCHEDULES = ("linear", "cosine", "constant")


@dataclass(kw_only=True)
class LoopArguments(StageArguments):
    learning_rate: float | None = HfArg(default=None, help="Peak learning rate of AdamW; by default the preset's.")
    weight_decay: float = HfArg(default=0.0, help="Decoupled weight decay.")
    schedule: str = HfArg(default="linear", help=f"How the rate falls after the warm-up: {', '.join(SCHEDULES)}.")
    warmup: float = HfArg(default=0.05, help="Share of the run in which the rate rises from 0.")
    max_grad_norm: float = HfArg(default=1.0, help="Longer gradients are cut to this length.")
    tokens_per_batch: int = HfArg(
        default=16_384, help="Tokens in a batch of one process; lower it if memory runs out."
    )
    gradient_accumulation_steps: int = HfArg(default=1, help="Batches of a process in one step.")
    epochs: float = HfArg(default=1.0, help="Times to go through the training data.")
    max_steps: int | None = HfArg(default=None, help="Stop after so many steps, whatever --epochs says.")
    max_train_minutes: float | None = HfArg(
        default=None,
        help="Stop after so many minutes; the step it stopped at is recorded, but depends on the machine.",
    )
    mixed_precision: str | None = HfArg(default=None, help="no, fp16 or bf16; by default what accelerate is set to.")
    seed: int = HfArg(default=0, help="Seed of everything random.")
    eval_every: int = HfArg(default=1000, help="Steps between evaluations on held-out documents, about.")
    checkpoint_every: int = HfArg(default=500, help="Steps between checkpoints, about.")
    keep_checkpoints: int = HfArg(default=2, help="Older ones are removed.")
    log_every: int = HfArg(
        default=10, help="Steps between looks at the loss, when a run may also be saved or stopped."
    )
    report_to: str | None = HfArg(default=None, help="Tracker known to accelerate, e.g. tensorboard or wandb.")

    unrecorded: ClassVar[tuple[str, ...]] = (
        *StageArguments.unrecorded,
        "checkpoint_every",
        "keep_checkpoints",
        "report_to",
    )

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES:
            raise UserError(f"unknown schedule {self.schedule!r}; expected one of {', '.join(SCHEDULES)}")
        for name in ("tokens_per_batch", "gradient_accumulation_steps", "eval_every", "checkpoint_every", "log_every"):
            if getattr(self, name) < 1:
                raise UserError(f"--{name} must be at least 1, got {getattr(self, name)}")
