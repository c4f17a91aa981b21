"""One training loop over accelerate for every model.

A step is `gradient_accumulation_steps` batches on each process; batch k of an epoch goes to process k modulo their
number, so two processes do what one does with twice the accumulation. Everything random is drawn from the seed and
the step, or from generators that checkpoints restore: a run that was interrupted, or killed between two checkpoints,
ends with the same weights, bit for bit, as one that was not.
"""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import torch
from accelerate import Accelerator
from tqdm import tqdm
from transformers import PreTrainedModel

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import write_json
from ctxsim_hf.train.checkpoints import Progress, last_checkpoint, load_checkpoint, save_checkpoint
from ctxsim_hf.train.interruption import Interruption
from ctxsim_hf.train.loop_arguments import LoopArguments


class Task(Protocol):
    """What the loop needs to know of a model and its data."""

    model: PreTrainedModel

    def batches(self, epoch: int) -> Sequence[Any]:
        """The batches of an epoch, the same whenever asked."""

    def collate(self, batch: Any, step: int) -> dict[str, torch.Tensor]:
        """Tensors for the model's forward; anything random is drawn from the seed and the step."""

    def evaluate(self, model: PreTrainedModel) -> dict[str, float]:
        """Figures on held-out documents."""


def make_accelerator(arguments: LoopArguments) -> Accelerator:
    try:
        accelerator = Accelerator(
            gradient_accumulation_steps=arguments.gradient_accumulation_steps,
            mixed_precision=arguments.mixed_precision,
            log_with=arguments.report_to,
            project_dir=arguments.output + ".tracking" if arguments.report_to else None,
        )
    except ValueError as error:  # an unknown tracker or precision
        raise UserError(f"accelerate refuses --report-to or --mixed-precision: {error}") from error
    torch.manual_seed(arguments.seed)
    return accelerator


def train(task: Task, arguments: LoopArguments, folder: Path, accelerator: Accelerator) -> dict[str, Any]:
    """Train `task.model`, keeping checkpoints under `folder`; returns the final figures."""
    run = _Run(task, arguments, folder / "checkpoints", accelerator)
    with _memory_errors_named(), Interruption() as interruption:
        run.go(interruption)
    metrics = task.evaluate(accelerator.unwrap_model(run.model))
    run.log(metrics, "eval/")
    if accelerator.is_main_process:
        write_json(folder / "history.json", run.progress.history)
    return {
        "steps": run.progress.step,
        "tokens": run.progress.tokens,
        "train_loss": run.progress.loss,
        **metrics,
    }


class _Run:
    def __init__(self, task: Task, arguments: LoopArguments, checkpoints: Path, accelerator: Accelerator) -> None:
        self.task, self.arguments, self.checkpoints, self.accelerator = task, arguments, checkpoints, accelerator
        self.peak_rate = float(arguments.learning_rate or 1e-3)
        optimizer = torch.optim.AdamW(
            task.model.parameters(),
            lr=self.peak_rate,
            betas=(0.9, 0.999),
            weight_decay=arguments.weight_decay,
            fused=accelerator.device.type == "cpu",  # on a GPU, fused and scaled fp16 gradients do not mix
        )
        self.model, self.optimizer = accelerator.prepare(task.model, optimizer)
        self.batches_per_step = accelerator.num_processes * arguments.gradient_accumulation_steps
        self.progress = Progress(layout=[accelerator.num_processes, accelerator.mixed_precision])
        self.total_steps = self._total_steps()
        torch.manual_seed(arguments.seed + accelerator.process_index)  # no two processes drop the same units
        self._resume()
        self._recent: list[torch.Tensor] = []  # losses since the last look
        self._norms: list[torch.Tensor] = []  # and lengths of gradients
        if arguments.report_to:
            accelerator.init_trackers("ctxsim", config={k: str(v) for k, v in arguments.recorded().items()})

    def _total_steps(self) -> int:
        per_epoch = len(self.task.batches(0)) // self.batches_per_step
        if per_epoch == 0:
            raise UserError(
                f"{len(self.task.batches(0))} batches are too few for one step of {self.batches_per_step}; "
                "lower --tokens-per-batch or --gradient-accumulation-steps, or add documents"
            )
        return self.arguments.max_steps or max(1, math.ceil(self.arguments.epochs * per_epoch))

    def go(self, interruption: Interruption) -> None:
        started, seconds_before = time.monotonic(), self.progress.seconds
        bar = tqdm(
            total=self.total_steps,
            initial=self.progress.step,
            desc="train",
            unit="step",
            disable=None if self.accelerator.is_main_process else True,
        )
        if self.progress.step and self._done():  # it was interrupted at the very end
            return
        self.model.train()
        with bar:
            for batches in self._steps():
                self._one_step(batches)
                self.progress.seconds = self._one_clock(seconds_before + time.monotonic() - started)
                bar.update()
                done = self._done()
                if not done and self.progress.step % self.arguments.log_every:
                    continue
                self._look(bar)  # stops at a broken model, so no checkpoint ever holds one
                interrupted = self._agreed(interruption.came)
                if done and not interrupted:
                    return
                if not done and self._passed(self.arguments.eval_every):
                    self._evaluate()
                if interrupted or self._passed(self.arguments.checkpoint_every):
                    self._save()
                if interrupted:
                    raise KeyboardInterrupt

    def _passed(self, interval: int) -> bool:
        """Whether a multiple of the interval lies between the last look and now."""
        return self.progress.step // interval > (self.progress.step - self.arguments.log_every) // interval

    def _steps(self) -> Iterator[list[Any]]:
        """This process's batches for each step, from where the run is, epoch after epoch."""
        while True:
            plan = self.task.batches(self.progress.epoch)
            while (self.progress.step_in_epoch + 1) * self.batches_per_step <= len(plan):
                first = self.progress.step_in_epoch * self.batches_per_step + self.accelerator.process_index
                self.progress.step += 1
                self.progress.step_in_epoch += 1
                yield [
                    plan[first + number * self.accelerator.num_processes]
                    for number in range(self.arguments.gradient_accumulation_steps)
                ]
            self.progress.epoch, self.progress.step_in_epoch = self.progress.epoch + 1, 0

    def _one_step(self, batches: list[Any]) -> None:
        factor = learning_rate_factor(self._share_done(), self.arguments.warmup, self.arguments.schedule)
        for group in self.optimizer.param_groups:
            group["lr"] = self.peak_rate * factor
        for number, batch in enumerate(batches):
            draw = (self.progress.step * len(batches) + number) * self.accelerator.num_processes
            tensors = self.task.collate(batch, draw + self.accelerator.process_index)
            self.progress.tokens += int(tensors["attention_mask"].sum()) * self.accelerator.num_processes
            tensors = {name: tensor.to(self.accelerator.device) for name, tensor in tensors.items()}
            with self.accelerator.accumulate(self.model):
                loss = self.model(**tensors).loss
                self.accelerator.backward(loss)
                if self.accelerator.sync_gradients:
                    norm = self.accelerator.clip_grad_norm_(self.model.parameters(), self.arguments.max_grad_norm)
                    self._norms.append(norm)
                self.optimizer.step()
                self.optimizer.zero_grad()
            self._recent.append(loss.detach())

    def _share_done(self) -> float:
        """How much of the run is behind: by steps, or by time where that is shorter."""
        share = (self.progress.step - 1) / self.total_steps
        if self.arguments.max_train_minutes:
            share = max(share, self.progress.seconds / 60 / self.arguments.max_train_minutes)
        return min(1.0, share)

    def _done(self) -> bool:
        limit = self.arguments.max_train_minutes
        return self.progress.step >= self.total_steps or bool(limit and self.progress.seconds / 60 >= limit)

    def _one_clock(self, seconds: float) -> float:
        """The mean of all processes' clocks where rates and the end depend on the time: with a clock of its own each
        would take steps of its own length, and the copies of the model would drift apart."""
        if self.accelerator.num_processes == 1 or not self.arguments.max_train_minutes:
            return seconds
        clocks = torch.tensor([seconds], device=self.accelerator.device)
        return float(self.accelerator.reduce(clocks, "mean").item())

    def _agreed(self, wish: bool) -> bool:
        """Whether any process wants to stop: all must stop at the same step."""
        if self.accelerator.num_processes == 1:
            return wish
        wishes = torch.tensor([float(wish)], device=self.accelerator.device)
        return bool(self.accelerator.reduce(wishes, "sum").item() > 0)

    def _look(self, bar: tqdm) -> None:
        """Fetch the mean loss since the last look; stop where it is no number, or where a step was none."""
        loss = self.accelerator.reduce(torch.stack(self._recent).mean(), "mean").item()
        longest = torch.stack(self._norms).max().item()
        self._recent.clear()
        self._norms.clear()
        broken = None if math.isfinite(loss) else f"the loss became {loss}"
        # With fp16 a gradient that is no number is part of finding its scale, and such a step is left out.
        if not math.isfinite(longest) and self.accelerator.mixed_precision != "fp16":
            broken = broken or f"a gradient became {longest}"
        if broken:
            last = last_checkpoint(self.checkpoints)
            kept = f"the last good checkpoint is {str(last)!r}" if last else "there is no checkpoint yet"
            raise UserError(
                f"{broken} by step {self.progress.step}; {kept}. "
                "Start again with a lower --learning-rate or --max-grad-norm, or with --mixed-precision no"
            )
        self.progress.loss = loss
        tokens_per_second = self.progress.tokens / self.progress.seconds
        bar.set_postfix(loss=f"{loss:.4f}", tokens_per_s=f"{tokens_per_second:,.0f}")
        self.log({"loss": loss, "learning_rate": self.optimizer.param_groups[0]["lr"]}, "train/")

    def log(self, values: dict[str, float], prefix: str) -> None:
        values = {prefix + name: value for name, value in values.items()}
        self.progress.history.append({"step": self.progress.step, **values})
        self.accelerator.log(values, step=self.progress.step)

    def _evaluate(self) -> None:
        figures = self.task.evaluate(self.accelerator.unwrap_model(self.model))
        self.model.train()
        self.log(figures, "eval/")
        if self.accelerator.is_main_process:
            shown = ", ".join(f"{name} {value:.4f}" for name, value in figures.items())
            tqdm.write(f"step {self.progress.step}: loss {self.progress.loss:.4f}, {shown}")

    def _save(self) -> None:
        save_checkpoint(self.accelerator, self.checkpoints, self.progress, self.arguments.keep_checkpoints)

    def _resume(self) -> None:
        last = last_checkpoint(self.checkpoints)
        if last is not None:
            self.progress = load_checkpoint(self.accelerator, last, self.progress.layout)
            if self.accelerator.is_main_process:
                tqdm.write(f"going on from step {self.progress.step}")


def learning_rate_factor(share_done: float, warmup: float, schedule: str) -> float:
    """Share of the peak rate: up from 0 during the warm-up, then as the schedule says, down to 0 at the end."""
    if share_done < warmup:
        return share_done / warmup
    rest = (share_done - warmup) / max(1e-9, 1 - warmup)
    return {"linear": 1 - rest, "cosine": 0.5 * (1 + math.cos(math.pi * rest)), "constant": 1.0}[schedule]


@contextmanager
def _memory_errors_named() -> Iterator[None]:
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error):
            first = str(error).splitlines()[0] if str(error) else "no memory left"
            raise UserError(
                f"out of memory ({first}). Lower --tokens-per-batch, and raise --gradient-accumulation-steps to match"
            ) from error
        raise
