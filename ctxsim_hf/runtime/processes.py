"""Agreement between the processes of one `accelerate launch`: the main process owns the stage folder, and tells the
others what it found there."""

from contextlib import ExitStack
from typing import Any

from accelerate import Accelerator
from accelerate.utils import broadcast_object_list

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.stage import Stage


def broadcast_from_main(value: Any) -> Any:
    """Return the main process's value on every process: a folder may change between two reads of it."""
    values = [value]
    broadcast_object_list(values)
    return values[0]


def enter_on_main_process(stage: Stage, stack: ExitStack, accelerator: Accelerator) -> None:
    """Enter a stage on the main process, and set `finished` or raise its error on all processes."""
    found: list[Any] = [None, False]  # an error's text; whether the folder is finished
    if accelerator.is_main_process:
        try:
            stack.enter_context(stage)
            found[1] = stage.finished
        except UserError as error:
            found[0] = str(error)
    broadcast_object_list(found)
    if found[0]:
        raise UserError(found[0])
    stage.finished = found[1]
