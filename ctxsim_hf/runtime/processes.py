"""What the processes of one `accelerate launch` agree on: one keeps the folder, and all learn what it found."""

from contextlib import ExitStack
from typing import Any

from accelerate import Accelerator
from accelerate.utils import broadcast_object_list

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.stage import Stage


def seen_by_all(found: Any) -> Any:
    """What the main process found, on every process: a folder may change between two looks."""
    values = [found]
    broadcast_object_list(values)
    return values[0]


def enter_on_main_process(stage: Stage, stack: ExitStack, accelerator: Accelerator) -> None:
    """What the main process finds in the folder, an error too, all processes learn."""
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
