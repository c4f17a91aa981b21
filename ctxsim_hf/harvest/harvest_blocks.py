"""Harvest in blocks of work, one for each parquet file of the plan."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from ctxsim_hf.harvest.drawing import Drawing
from ctxsim_hf.harvest.harvest_arguments import HarvestArguments
from ctxsim_hf.harvest.pair_files import describe_pairs, write_block
from ctxsim_hf.harvest.plan import make_plan
from ctxsim_hf.harvest.stored_plan import PLAN_FILE, StoredPlan, write_plan
from ctxsim_hf.origin.layout import default_device
from ctxsim_hf.origin.similarity import OriginSimilarity
from ctxsim_hf.runtime.blocks import FileBlocks, share


def _ignore(number: int) -> None:
    pass


@dataclass
class HarvestBlocks(FileBlocks):
    """The files of a harvest, or of one shard of it.

    Args:
        folder (`Path`): Where they are written.
        arguments (`HarvestArguments`): Which pairs to draw and how to label them.
        device (`torch.device`, *optional*): Where the models run. None is the GPU of the process that runs a block, or
            its CPU if there is none.
        show_progress (`bool`): Show a progress bar while the plan is drawn.
        advance (`Callable[[int], Any]`): Called with the number of pairs of each labelled group.
    """

    arguments: HarvestArguments
    device: torch.device | None = None
    show_progress: bool = False
    advance: Callable[[int], Any] = _ignore

    @cached_property
    def origin(self) -> OriginSimilarity:
        """The origin that labels the pairs, opened on first use."""
        return self.arguments.open_on(self.device or torch.device(default_device()))

    @cached_property
    def _drawing(self) -> Drawing:
        arguments = self.arguments
        tokens = (arguments.min_tokens, arguments.max_tokens)
        return Drawing(self.origin.index, arguments.mix, tokens, arguments.seed)

    @cached_property
    def _plan(self) -> StoredPlan:
        """The plan of all shards, drawn by the first process that needs it."""
        path, arguments = self.folder / PLAN_FILE, self.arguments
        if not path.exists():
            pairs = (arguments.pairs, arguments.pairs_per_file)
            write_plan(path, make_plan(self._drawing, *pairs, self.show_progress, arguments.at_most))
        return StoredPlan(path)

    def blocks(self) -> list[str]:
        """Return the names of the files."""
        return share(self._plan.names, self.arguments.shard or 0, self.arguments.num_shards)

    def num_pairs(self, name: str) -> int:
        """Return the number of pairs in a block."""
        return self._plan.num_pairs(name)

    def run_block(self, name: str) -> None:
        """Label the pairs of one file and write it."""
        mode = self.arguments.mode
        write_block(self.folder / name, self._plan[name], self._drawing, self.origin, mode, self.advance)

    def merge(self) -> dict[str, Any]:
        """Return the counts that stage.json records; the files stay as they are, and the plan is removed."""
        counts = describe_pairs([self.folder / name for name in self.blocks()])
        for path in self.folder.glob(f"{PLAN_FILE}*"):  # also temporary files of a process that was killed
            path.unlink()
        return counts
