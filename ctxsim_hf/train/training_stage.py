"""A training task -> a stage folder with the model, its tokenizer, metrics.json, history.json and stage.json.

The main process owns the folder, and all processes train.
"""

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from accelerate import Accelerator
from transformers import TokenizersBackend

from ctxsim_hf.runtime.files import explain_write_errors, read_json, write_json
from ctxsim_hf.runtime.processes import broadcast_from_main, enter_on_main_process
from ctxsim_hf.runtime.record import read_counts
from ctxsim_hf.runtime.stage import Stage
from ctxsim_hf.train.loop import TrainingTask, make_accelerator, train
from ctxsim_hf.train.loop_arguments import LoopArguments

PACKAGES = ("accelerate", "torch", "transformers")
METRICS_FILE = "metrics.json"


def run_training(
    command: str,
    arguments: LoopArguments,
    inputs: dict[str, Any],
    tokenizer: TokenizersBackend,
    make_task: Callable[[], TrainingTask],
    fit: Callable[..., dict[str, Any]] = train,
) -> dict[str, Any]:
    """Train a task, save the model to `arguments.output`, and return the counts of stage.json.

    Args:
        command (`str`): The verb.
        arguments (`LoopArguments`): Flags of the run.
        inputs (`dict[str, Any]`): JSON-ready description of the inputs.
        tokenizer (`TokenizersBackend`): Saved beside the model.
        make_task (`Callable[[], TrainingTask]`): Makes the task, first on the main process, which fills the caches.
        fit (`Callable`): Sets the weights; the training loop, or another function of the same signature.
    """

    def train_task(stage: Stage, accelerator: Accelerator) -> None:
        if accelerator.is_main_process:
            stage.log(f"training on {accelerator.num_processes} process(es), {accelerator.device}")
        with accelerator.main_process_first():  # it fills the caches that the other processes read
            task = make_task()
        metrics = fit(task, arguments, stage.folder, accelerator)
        state_dict = accelerator.get_state_dict(task.model)  # gathered from every process
        if accelerator.is_main_process:
            with explain_write_errors(stage.folder):
                task.model.save_pretrained(stage.folder, state_dict=state_dict)
                tokenizer.save_pretrained(stage.folder)
            write_json(stage.folder / METRICS_FILE, metrics)

    return run_on_all_processes(command, arguments, inputs, train_task, "checkpoints")


def run_on_all_processes(
    command: str,
    arguments: LoopArguments,
    inputs: dict[str, Any],
    work: Callable[[Stage, Accelerator], None],
    temporary: str,
) -> dict[str, Any]:
    """Run a stage to which all processes contribute, and return the counts of stage.json.

    Args:
        command (`str`): The verb.
        arguments (`LoopArguments`): Flags of the run.
        inputs (`dict[str, Any]`): JSON-ready description of the inputs.
        work (`Callable`): Called on every process. It writes the metrics last: once they exist, a run that is killed
            need not work again.
        temporary (`str`): The folder in the stage that only an unfinished run needs.
    """
    accelerator = make_accelerator(arguments)
    stage = Stage(command, arguments, inputs, PACKAGES)
    with ExitStack() as stack:
        enter_on_main_process(stage, stack, accelerator)
        if not stage.finished:
            if not broadcast_from_main(stage.has(METRICS_FILE)):
                work(stage, accelerator)
            if accelerator.is_main_process:
                shutil.rmtree(stage.folder / temporary, ignore_errors=True)
                stage.finish(read_json(stage.folder / METRICS_FILE))
    accelerator.wait_for_everyone()
    # Not `end_training`, which would also end the process group, and other stages may follow.
    for tracker in accelerator.trackers:
        tracker.finish()
    return read_counts(arguments.output, command)
