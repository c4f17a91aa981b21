"""A stage's work, cut into blocks that can run anywhere and in any order, and the executors that run them.

    counts = execute(ChunkBlocks(folder, arguments), LocalExecutor(workers=2))

An executor is any callable that takes the work and the names of blocks to run: a process pool here, a cluster
elsewhere. A finished block is a file, so an interrupted run resumes with the blocks that are missing.
"""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Protocol

from tqdm import tqdm

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.parallel import ordered_map


class Blocks(Protocol):
    """The work of a stage in blocks.

    An instance is small and picklable, and opens what it needs in the process that runs a block. It runs one block at
    a time; an executor with threads gives each thread its own `copy.copy`.
    """

    folder: Path  # of the finished blocks; an executor may keep its own records beside it

    def blocks(self) -> list[str]:
        """Return the names of all blocks in order. They are known before any block runs."""

    def is_done(self, name: str) -> bool:
        """Return whether a block is finished."""

    def run_block(self, name: str) -> None:
        """Make one block, whole or not at all."""

    def merge(self) -> Any:
        """Put the finished blocks together and return what the stage needs of them, such as counts."""


class Executor(Protocol):
    """Runs blocks. It may return before they are finished if it has handed them to other processes."""

    def __call__(self, work: Blocks, names: Sequence[str]) -> None: ...


@dataclass
class FileBlocks:
    """A base class for work whose blocks are files in a folder, each named by its path there.

    A subclass keeps what it opens once in a `cached_property`, which is dropped when an instance is copied or sent to
    another process.
    """

    folder: Path

    def is_done(self, name: str) -> bool:
        return (self.folder / name).exists()

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True)
class LocalExecutor:
    """Runs blocks on this machine, with a progress bar.

    Args:
        workers (`int`): Number of processes. With 1, blocks run in this process.
        desc (`str`): Label of the progress bar.
    """

    workers: int = 1
    desc: str = "blocks"

    def __call__(self, work: Blocks, names: Sequence[str]) -> None:
        workers = max(1, min(self.workers, len(names)))
        run = work.run_block if workers == 1 else partial(_run_block, pickle.dumps(work))
        total = len(work.blocks())
        bar = tqdm(total=total, initial=total - len(names), desc=self.desc, unit="block", disable=None)
        with bar:
            for _ in ordered_map(run, names, workers):
                bar.update()


@dataclass(frozen=True)
class RankExecutor:
    """Runs the blocks of one rank in this process. The ranks may be processes of one launch, or independent jobs.

    Which blocks belong to a rank depends on the work alone, not on what is finished.
    """

    rank: int
    world_size: int

    def __call__(self, work: Blocks, names: Sequence[str]) -> None:
        own = set(consecutive_share(work.blocks(), self.rank, self.world_size))
        for name in names:
            if name in own:
                work.run_block(name)


def consecutive_share(names: Sequence[str], rank: int, world_size: int) -> list[str]:
    """Return the blocks of a rank, which follow each other, so that the rank reads few files of a corpus."""
    return list(names[rank * len(names) // world_size : (rank + 1) * len(names) // world_size])


def share(names: Sequence[str], rank: int, world_size: int) -> list[str]:
    """Return every `world_size`-th block, starting with number `rank`."""
    return list(names[rank::world_size])


def execute(work: Blocks, executor: Executor) -> Any:
    """Run the missing blocks and return the result of `merge`."""
    run_missing(work, executor)
    return merge_finished(work)


def run_missing(work: Blocks, executor: Executor) -> None:
    """Run the missing blocks, or those of them that belong to the executor."""
    if names := missing_blocks(work):
        executor(work, names)


def missing_blocks(work: Blocks) -> list[str]:
    """Return the names of the unfinished blocks."""
    return [name for name in work.blocks() if not work.is_done(name)]


def merge_finished(work: Blocks) -> Any:
    """Check that no block is missing and return the result of `merge`."""
    if missing := missing_blocks(work):
        shown = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
        raise UserError(
            f"expected {len(work.blocks())} finished blocks, but {len(missing)} are missing: {shown}. "
            "Run the same command again to make them"
        )
    return work.merge()


def _run_block(pickled: bytes, name: str) -> None:
    unpickle_once(pickled).run_block(name)


@lru_cache(maxsize=1)
def unpickle_once(pickled: bytes) -> Blocks:
    """Unpickle the work once in each process, for all blocks or ranks that the process will run."""
    work: Blocks = pickle.loads(pickled)
    return work
