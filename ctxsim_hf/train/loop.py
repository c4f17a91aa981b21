"""A model and its batches -> trained weights: one loop over accelerate for every model.

A step is `gradient_accumulation_steps` batches on each process. Batch k of an epoch goes to process k modulo the
number of processes, so two processes do what one does with twice the accumulation. All randomness comes from the seed
and the step, or from generators that checkpoints restore: a run that was interrupted, or killed between two
checkpoints, ends with the same weights, bit for bit, as one that was not.
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

from ctxsim_hf.runtime.counts import format_counts
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import write_json
from ctxsim_hf.runtime.memory import reused_memory
from ctxsim_hf.runtime.presets import filled
from ctxsim_hf.runtime.threads import no_spinning
from ctxsim_hf.train.checkpoints import Progress, last_checkpoint, load_checkpoint, save_checkpoint
from ctxsim_hf.train.interruption import Interruption
from ctxsim_hf.train.loop_arguments import LoopArguments

SECONDS_BAR = "{l_bar}{bar}| {n_fmt}/{total_fmt} s [{elapsed}<{remaining}{postfix}]"


class TrainingTask(Protocol):
    """A model and its data, as the loop needs them."""

    model: PreTrainedModel

    def batches(self, epoch: int) -> Sequence[Any]:
        """Return the batches of an epoch, the same on every call."""

    def collate(self, batch: Any, step: int) -> dict[str, torch.Tensor]:
        """Return the arguments of the model's `forward`; anything random must depend on the seed and the step only."""

    def evaluate(self, model: PreTrainedModel) -> dict[str, float]:
        """Return figures on held-out data."""


def make_accelerator(arguments: LoopArguments) -> Accelerator:
    """Make the accelerator of a run and set the seed."""
    try:
        accelerator = Accelerator(
            gradient_accumulation_steps=arguments.gradient_accumulation_steps,
            mixed_precision=arguments.mixed_precision,
            log_with=arguments.report_to,
            project_dir=arguments.output + ".tracking" if arguments.report_to else None,
        )
    except ValueError as error:  # an unknown tracker or precision
        raise UserError(f"accelerate does not accept --report-to or --mixed-precision: {error}") from error
    torch.manual_seed(arguments.seed)
    return accelerator


def train(task: TrainingTask, arguments: LoopArguments, folder: Path, accelerator: Accelerator) -> dict[str, Any]:
    """Train `task.model` with checkpoints in `folder`, and return the final figures."""
    run = _Run(task, arguments, folder / "checkpoints", accelerator)
    with explain_memory_errors(), no_spinning(), reused_memory(), Interruption() as interruption:
        run.train(interruption)
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
    def __init__(
        self, task: TrainingTask, arguments: LoopArguments, checkpoints: Path, accelerator: Accelerator
    ) -> None:
        self.task, self.arguments, self.checkpoints, self.accelerator = task, arguments, checkpoints, accelerator
        self.peak_rate = float(filled(arguments.learning_rate))
        optimizer = torch.optim.AdamW(
            task.model.parameters(),
            lr=self.peak_rate,
            betas=(0.9, 0.999),
            weight_decay=arguments.weight_decay,
            fused=accelerator.device.type == "cpu",  # on a GPU, fused AdamW does not work with scaled fp16 gradients
        )
        self.model, self.optimizer = accelerator.prepare(task.model, optimizer)
        self.batches_per_step = accelerator.num_processes * arguments.gradient_accumulation_steps
        self.progress = Progress(layout=[accelerator.num_processes, accelerator.mixed_precision])
        self.total_steps = self._total_steps()
        torch.manual_seed(arguments.seed + accelerator.process_index)  # so that each process has its own dropout
        self._resume()
        self._losses: list[torch.Tensor] = []  # since the last logging
        self._gradient_norms: list[torch.Tensor] = []
        if arguments.report_to:
            accelerator.init_trackers("ctxsim", config={k: str(v) for k, v in arguments.recorded().items()})

    def _total_steps(self) -> int:
        per_epoch = len(self.task.batches(0)) // self.batches_per_step
        if per_epoch == 0:
            raise UserError(
                f"expected at least {self.batches_per_step} batches for one step, got {len(self.task.batches(0))}; "
                "lower --tokens-per-batch or --gradient-accumulation-steps, or add documents"
            )
        return self.arguments.max_steps or max(1, math.ceil(self.arguments.epochs * per_epoch))

    def train(self, interruption: Interruption) -> None:
        if self.progress.step and self._done():  # interrupted after the last step
            return
        started, seconds_before = time.monotonic(), self.progress.seconds
        self.model.train()
        with self._bar() as bar:
            for batches in self._steps():
                self._train_step(batches)
                self.progress.seconds = self._agree_on_seconds(seconds_before + time.monotonic() - started)
                bar.update(self._counted() - bar.n)
                done = self._done()
                if not done and self.progress.step % self.arguments.log_every:
                    continue
                self._log_loss(bar)  # raises if the loss is not finite, so that no checkpoint holds a broken model
                interrupted = self._any_process(interruption.requested)
                if done and not interrupted:
                    return
                if not done and self._is_due(self.arguments.eval_every):
                    self._evaluate()
                if interrupted or self._is_due(self.arguments.checkpoint_every):
                    self._save()
                if interrupted:
                    raise KeyboardInterrupt

    def _bar(self) -> tqdm:
        """Return a bar of the steps, or of the seconds that a run with a time limit may take."""
        minutes = self.arguments.max_train_minutes
        return tqdm(
            total=round(60 * minutes) if minutes else self.total_steps,
            initial=self._counted(),
            desc="train",
            unit="step",
            bar_format=SECONDS_BAR if minutes else None,
            disable=None if self.accelerator.is_main_process else True,
        )

    def _counted(self) -> int:
        """Return where the bar stands. That of seconds runs ahead of the clock where the steps will end first."""
        minutes = self.arguments.max_train_minutes
        return round(60 * minutes * self._share_done(self.progress.step)) if minutes else self.progress.step

    def _is_due(self, interval: int) -> bool:
        """Return whether a multiple of the interval was passed since the last logging."""
        return self.progress.step // interval > (self.progress.step - self.arguments.log_every) // interval

    def _steps(self) -> Iterator[list[Any]]:
        """Yield the batches of this process for each step, starting at the current one, epoch after epoch."""
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

    def _train_step(self, batches: list[Any]) -> None:
        share_done = self._share_done(self.progress.step - 1)
        factor = learning_rate_factor(share_done, self.arguments.warmup, self.arguments.schedule)
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
                    self._gradient_norms.append(norm)
                self.optimizer.step()
                self.optimizer.zero_grad()
            self._losses.append(loss.detach())

    def _share_done(self, steps: int) -> float:
        """Return the share of the run that is done after these steps, by steps or by time, whichever is larger."""
        share = steps / self.total_steps
        if self.arguments.max_train_minutes:
            share = max(share, self.progress.seconds / 60 / self.arguments.max_train_minutes)
        return min(1.0, share)

    def _done(self) -> bool:
        limit = self.arguments.max_train_minutes
        return self.progress.step >= self.total_steps or bool(limit and self.progress.seconds / 60 >= limit)

    def _agree_on_seconds(self, seconds: float) -> float:
        """Return the mean over all processes if the learning rate depends on time: with its own clock, each process
        would use its own rate, and the copies of the model would drift apart."""
        if self.accelerator.num_processes == 1 or not self.arguments.max_train_minutes:
            return seconds
        clocks = torch.tensor([seconds], device=self.accelerator.device)
        return float(self.accelerator.reduce(clocks, "mean").item())

    def _any_process(self, requested: bool) -> bool:
        """Return whether any process was asked to stop: all must stop at the same step."""
        if self.accelerator.num_processes == 1:
            return requested
        requests = torch.tensor([float(requested)], device=self.accelerator.device)
        return bool(self.accelerator.reduce(requests, "sum").item() > 0)

    def _log_loss(self, bar: tqdm) -> None:
        """Log the mean loss since the last call; raise an error if it or a gradient is not finite."""
        loss = self.accelerator.reduce(torch.stack(self._losses).mean(), "mean").item()
        largest = torch.stack(self._gradient_norms).max().item()
        self._losses.clear()
        self._gradient_norms.clear()
        broken = None if math.isfinite(loss) else f"the loss became {loss}"
        # With fp16, gradients overflow while the scale is searched for, and such steps are skipped.
        if not math.isfinite(largest) and self.accelerator.mixed_precision != "fp16":
            broken = broken or f"a gradient became {largest}"
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
        """Add values to the history and send them to the trackers."""
        values = {prefix + name: value for name, value in values.items()}
        self.progress.history.append({"step": self.progress.step, **values})
        self.accelerator.log(values, step=self.progress.step)

    def _evaluate(self) -> None:
        figures = self.task.evaluate(self.accelerator.unwrap_model(self.model))
        self.model.train()
        self.log(figures, "eval/")
        if self.accelerator.is_main_process:
            tqdm.write(f"step {self.progress.step}: training loss {self.progress.loss:.4f}\n{format_counts(figures)}")

    def _save(self) -> None:
        save_checkpoint(self.accelerator, self.checkpoints, self.progress, self.arguments.keep_checkpoints)

    def _resume(self) -> None:
        last = last_checkpoint(self.checkpoints)
        if last is not None:
            self.progress = load_checkpoint(self.accelerator, last, self.progress.layout)
            if self.accelerator.is_main_process:
                tqdm.write(f"resuming from step {self.progress.step}")


def learning_rate_factor(share_done: float, warmup: float, schedule: str) -> float:
    """Return the share of the peak learning rate: it rises from 0 during the warm-up, then follows the schedule."""
    if share_done < warmup:
        return share_done / warmup
    rest = (share_done - warmup) / max(1e-9, 1 - warmup)
    return {"linear": 1 - rest, "cosine": 0.5 * (1 + math.cos(math.pi * rest)), "constant": 1.0}[schedule]


@contextmanager
def explain_memory_errors() -> Iterator[None]:
    """Turn errors of memory into a `UserError` that says what to do."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error):
            first = str(error).splitlines()[0] if str(error) else "no memory left"
            raise UserError(
                f"out of memory ({first}). Lower --tokens-per-batch, and raise --gradient-accumulation-steps to match"
            ) from error
        raise
