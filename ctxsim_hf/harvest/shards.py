"""Harvest in shards under any scheduler, by jobs that know nothing of each other and run in any order.

Each job is a stage of its own in `<output>.ctxsim-shards/<I>-of-<N>`, so it resumes by itself. The job that finds all
shards finished copies their files into the folder that a single run would have made, and removes the shards.
"""

import json
import shutil
from pathlib import Path

import filelock

from ctxsim_hf.harvest.harvest_arguments import HarvestArguments
from ctxsim_hf.harvest.pair_files import describe_pairs
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import describe_file
from ctxsim_hf.runtime.record import read_stage
from ctxsim_hf.runtime.stage import Stage
from ctxsim_hf.runtime.working import make_marked_folder


def missing_shards(arguments: HarvestArguments) -> list[int]:
    """Return the shards that are not finished; none once the shards have been merged."""
    if Path(arguments.output).exists():
        return []
    return [shard for shard in range(arguments.num_shards) if not Path(arguments.of_shard(shard).output).exists()]


def merge_shards(whole: Stage, arguments: HarvestArguments) -> None:
    """Merge all shards into one folder, unless another job already has."""
    make_marked_folder(arguments.shards_folder)
    with filelock.FileLock(arguments.shards_folder / "lock"):
        if not whole.output.exists():
            with whole:
                for shard in range(arguments.num_shards):
                    _copy(Path(arguments.of_shard(shard).output), whole)
                whole.finish(describe_pairs(list(whole.folder.glob("data/*.parquet"))))
        shutil.rmtree(arguments.shards_folder, ignore_errors=True)


def _copy(folder: Path, whole: Stage) -> None:
    record = read_stage(folder)
    if any(record[key] != value for key, value in json.loads(json.dumps(whole.recipe)).items()):
        raise UserError(
            f"{str(folder)!r} was made by other arguments or versions than this shard; make it again with --overwrite"
        )
    for name, expected in record["files"].items():
        if whole.has(name):
            continue
        with whole.writing(name) as temporary:
            shutil.copyfile(folder / name, temporary)
            if describe_file(temporary) != expected:
                raise UserError(f"{str(folder / name)!r} is damaged; run that shard again to replace it")
