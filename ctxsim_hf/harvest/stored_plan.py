"""Keep a plan of harvest in a memory-mapped file, so that it is drawn once for all processes that make its blocks."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from ctxsim_hf.harvest.drawing import Group
from ctxsim_hf.harvest.plan import Block, CountedGroup
from ctxsim_hf.runtime.files import writing

PLAN_FILE = "plan.arrow"
_ARRAYS = ("sentences", "families", "ranks")
_SCHEMA = pa.schema(
    [("block", pa.string()), *((name, pa.list_(pa.int64())) for name in _ARRAYS), ("num_pairs", pa.int64())]
)


def write_plan(path: Path, plan: list[Block]) -> None:
    """Write a plan: a record batch for each block, with a row for each group."""
    with writing(path, shared=True) as temporary, pa.ipc.new_file(str(temporary), _SCHEMA) as file:
        for block in plan:
            columns = [
                [block.name] * len(block.groups),
                *([getattr(counted.group, name) for counted in block.groups] for name in _ARRAYS),
                [counted.num_pairs for counted in block.groups],
            ]
            arrays = [pa.array(column, kind.type) for column, kind in zip(columns, _SCHEMA, strict=True)]
            file.write_batch(pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA))


class StoredPlan:
    """The blocks in a file written by `write_plan`, by name."""

    def __init__(self, path: Path) -> None:
        self._file = pa.ipc.open_file(pa.memory_map(str(path)))
        self._numbers = {self._batch(i)["block"][0].as_py(): i for i in range(self._file.num_record_batches)}

    def _batch(self, number: int) -> pa.RecordBatch:
        return self._file.get_batch(number)

    @property
    def names(self) -> list[str]:
        """The names of all blocks, in order."""
        return list(self._numbers)

    def __getitem__(self, name: str) -> Block:
        rows = self._batch(self._numbers[name]).to_pylist()
        groups = [Group(*(np.array(row[array], np.int64) for array in _ARRAYS)) for row in rows]
        return Block(name, [CountedGroup(g, row["num_pairs"]) for g, row in zip(groups, rows, strict=True)])

    def num_pairs(self, name: str) -> int:
        """Return the number of pairs in a block."""
        return int(self._batch(self._numbers[name])["num_pairs"].to_numpy().sum())
