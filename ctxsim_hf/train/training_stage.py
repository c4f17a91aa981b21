"""A training run as a stage: the main process keeps the folder, all processes train, and the folder ends up holding
the model, its tokenizer, metrics.json, history.json and stage.json."""

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from accelerate import Accelerator
from transformers import TokenizersBackend

from ctxsim_hf.runtime.files import read_json, write_json
from ctxsim_hf.runtime.processes import broadcast_from_main, enter_on_main_process
from ctxsim_hf.runtime.stage import Stage, read_stage
from ctxsim_hf.train.loop import Task, make_accelerator, train
from ctxsim_hf.train.loop_arguments import LoopArguments

PACKAGES = ("accelerate", "torch", "transformers")
METRICS_FILE = "metrics.json"


def run_training(
    command: str,
    arguments: LoopArguments,
    inputs: dict[str, Any],
    tokenizer: TokenizersBackend,
    make_task: Callable[[], Task],
    fit: Callable[..., dict[str, Any]] = train,
) -> dict[str, Any]:
    """Train what `make_task` makes and leave it in `arguments.output`; returns the counts of stage.json. `fit` is
    the loop, or something else of its signature that sets the weights."""
    accelerator = make_accelerator(arguments)
    stage = Stage(command, arguments, inputs, PACKAGES)
    with ExitStack() as stack:
        enter_on_main_process(stage, stack, accelerator)
        if not stage.finished:
            if not broadcast_from_main(stage.has(METRICS_FILE)):
                _train(stage, arguments, tokenizer, make_task, fit, accelerator)
            if accelerator.is_main_process:
                finish_with_metrics(stage, "checkpoints")
    accelerator.wait_for_everyone()
    # Not its end_training, after which no other stage could use these processes.
    for tracker in accelerator.trackers:
        tracker.finish()
    counts: dict[str, Any] = read_stage(arguments.output, command)["counts"]
    return counts


def _train(
    stage: Stage,
    arguments: LoopArguments,
    tokenizer: TokenizersBackend,
    make_task: Callable[[], Task],
    fit: Callable[..., dict[str, Any]],
    accelerator: Accelerator,
) -> None:
    if accelerator.is_main_process:
        stage.log(f"training on {accelerator.num_processes} process(es), {accelerator.device}")
    with accelerator.main_process_first():  # it fills the caches that the others read
        task = make_task()
    metrics = fit(task, arguments, stage.folder, accelerator)
    state_dict = accelerator.get_state_dict(task.model)  # every process takes part in gathering it
    if accelerator.is_main_process:
        task.model.save_pretrained(stage.folder, state_dict=state_dict)
        tokenizer.save_pretrained(stage.folder)
        write_json(stage.folder / METRICS_FILE, metrics)


def finish_with_metrics(stage: Stage, scaffold: str) -> None:
    """Take away the folder that training leaned on, and seal the stage. Metrics are the last that training writes:
    where they are, a run that was killed in here need not train again."""
    shutil.rmtree(stage.folder / scaffold, ignore_errors=True)
    stage.finish(read_json(stage.folder / METRICS_FILE))
