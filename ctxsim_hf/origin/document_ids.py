"""Find documents of an origin by their ids."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ctxsim_hf.origin.context_index import map_texts
from ctxsim_hf.origin.segments import Version
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.chunking import split_of
from ctxsim_hf.text.chunks import SHARD_PATTERN

PART = r"~\d+$"  # ends the id of a part of a long document


@dataclass(frozen=True)
class DocumentIds:
    """The ids of the documents of a version."""

    version: Version

    @cached_property
    def _ids(self) -> pa.ChunkedArray:
        """The document of each chunk, deleted ones included."""
        return pa.chunked_array([part for s in self.version.segments for part in map_texts(s)["doc_id"].chunks])

    def among(self, ids: pa.Array) -> list[str]:
        """Return those of these ids that documents have which are not deleted."""
        held = pc.is_in(self._ids, ids).to_numpy()
        held[self.version.deleted] = False
        return list(dict.fromkeys(self._ids.filter(pa.array(held)).to_pylist()))

    def chunks_of(self, ids: Sequence[str], held_out: float) -> np.ndarray:
        """Return the chunks of documents, numbered through all segments; a part of a long document goes with it.

        Args:
            ids (`Sequence[str]`): The ids. Documents may be deleted already; ids that none ever had are refused.
            held_out (`float`): Share of documents that were held out, and so have no chunks here.
        """
        whole = pc.replace_substring_regex(self._ids, PART, "")
        found = {*pc.unique(self._ids).to_pylist(), *pc.unique(whole).to_pylist()}
        if unknown := [name for name in ids if name not in found and split_of(name, held_out) == "train"]:
            raise UserError(
                f"no document has the id {unknown[0]!r} ({len(unknown)} of {len(ids)} ids are unknown); "
                f"an id looks like {self._ids[0].as_py()!r}"
            )
        wanted = pa.array(list(ids))
        return np.flatnonzero(pc.or_(pc.is_in(self._ids, wanted), pc.is_in(whole, wanted)).to_numpy())


def chunk_ids(chunks: Path) -> pa.Array:
    """Return the ids of the train documents in a folder of chunks."""
    train = [("split", "=", "train")]
    columns = [
        pq.read_table(path, columns=["doc_id"], filters=train)["doc_id"] for path in sorted(chunks.glob(SHARD_PATTERN))
    ]
    return pc.unique(pa.chunked_array([part for column in columns for part in column.chunks]))
