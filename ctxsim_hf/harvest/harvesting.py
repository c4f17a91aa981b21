"""Turn the sentences of an origin into labelled pairs: the stage `ctxsim harvest`.

    accelerate launch -m ctxsim_hf.harvest --origin origin --pairs 1000000 --mode group --output pairs

One process, many processes of `accelerate launch`, or many jobs that know nothing of each other (`--shard I
--num-shards N`, see shards.py) write the same folder of parquet files, `data/<split>-<number>-of-<total>.parquet`.
"""

from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from typing import Any

from accelerate import Accelerator, InitProcessGroupKwargs
from accelerate.utils import gather_object
from tqdm import tqdm

from ctxsim_hf.harvest.harvest_arguments import HarvestArguments
from ctxsim_hf.harvest.harvest_blocks import HarvestBlocks
from ctxsim_hf.harvest.repair import RepairedStage
from ctxsim_hf.harvest.shards import merge_shards, missing_shards
from ctxsim_hf.runtime.array_job import array_rank
from ctxsim_hf.runtime.blocks import (
    Executor,
    RankExecutor,
    consecutive_share,
    execute,
    merge_finished,
    missing_blocks,
    run_missing,
)
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.processes import broadcast_from_main, enter_on_main_process
from ctxsim_hf.runtime.record import read_counts
from ctxsim_hf.runtime.stage import Stage
from ctxsim_hf.runtime.working import make_marked_folder

COMMAND = "harvest"
PACKAGES = ("numpy", "pyarrow", "scipy", "tokenizers", "torch", "transformers")


def run(arguments: HarvestArguments, executor: Executor | None = None) -> dict[str, Any] | str:
    """Run the stage; return the counts that stage.json records, or a line that says which shards are missing.

    Args:
        arguments (`HarvestArguments`): Which pairs to draw and how to label them.
        executor (`Executor`, *optional*): Makes the files. None makes them in the processes of this launch.
    """
    if executor is not None:
        return _harvest_by(executor, arguments)
    if arguments.array:
        task = array_rank()
        arguments = replace(arguments, shard=task.rank, num_shards=task.world_size, array=False)
    # A process that has done its part waits for the others, however long.
    accelerator = Accelerator(kwargs_handlers=[InitProcessGroupKwargs(timeout=timedelta(days=30))])
    inputs = arguments.inputs()
    whole = RepairedStage(COMMAND, arguments, inputs, PACKAGES)
    missing: list[int] = []
    if arguments.num_shards == 1 or broadcast_from_main(whole.output.exists()):
        arguments.refuse_to_replace_in_shards()
        _harvest(whole, replace(arguments, shard=None, num_shards=1), accelerator)
    else:
        own = arguments.of_shard(arguments.shard or 0)
        make_marked_folder(arguments.shards_folder)
        _harvest(RepairedStage(COMMAND, own, inputs, PACKAGES), own, accelerator)
        missing = broadcast_from_main(missing_shards(arguments))
        if accelerator.is_main_process and not missing:
            merge_shards(whole, arguments)
    accelerator.wait_for_everyone()
    if missing:
        numbers = ", ".join(map(str, missing))
        return f"shard {arguments.shard} of {arguments.num_shards} is finished; still to come: {numbers}"
    return read_counts(arguments.output, COMMAND)


def _harvest_by(executor: Executor, arguments: HarvestArguments) -> dict[str, Any]:
    if arguments.num_shards > 1 or arguments.array:
        raise UserError("an executor makes all files; leave out --shard, --num-shards and --array")
    with RepairedStage(COMMAND, arguments, arguments.inputs(), PACKAGES) as stage:
        if not stage.finished:
            stage.finish(execute(HarvestBlocks(stage.folder, arguments), executor))
    return read_counts(arguments.output, COMMAND)


def _harvest(stage: Stage, arguments: HarvestArguments, accelerator: Accelerator) -> None:
    """Make the missing files of one folder on all processes."""
    with ExitStack() as stack:
        enter_on_main_process(stage, stack, accelerator)
        if stage.finished:
            return
        work = HarvestBlocks(stage.folder, arguments, accelerator.device, accelerator.is_main_process)
        with accelerator.main_process_first():  # which checks the files of the origin
            _ = work.origin
        missing = broadcast_from_main(missing_blocks(work))
        if accelerator.is_main_process:
            stage.log(f"{len(missing)} files to make on {accelerator.num_processes} process(es), {accelerator.device}")
        error = None
        try:
            _run_share(work, accelerator)
        except UserError as problem:
            error = str(problem)
        # One process reports errors, so it must learn what stopped another.
        if errors := [text for text in gather_object([error]) if text]:
            raise UserError(errors[0])
        if accelerator.is_main_process:
            stage.finish(merge_finished(work))


def _run_share(work: HarvestBlocks, accelerator: Accelerator) -> None:
    """Make the missing files of this process."""
    rank, world_size = accelerator.process_index, accelerator.num_processes
    total = sum(
        work.num_pairs(name) for name in consecutive_share(work.blocks(), rank, world_size) if not work.is_done(name)
    )
    quiet = None if accelerator.is_main_process else True
    with tqdm(total=total, desc="harvest", unit="pair", smoothing=0.05, disable=quiet) as bar:
        work.advance = bar.update
        run_missing(work, RankExecutor(rank, world_size))
