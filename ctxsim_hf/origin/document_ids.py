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

PART = r"~([2-9]|[1-9]\d+)$"  # ends the id of a part of a long document, the first of which has none


@dataclass(frozen=True)
class DocumentIds:
    """The ids of the documents of a version."""

    version: Version

    @cached_property
    def _ids(self) -> pa.ChunkedArray:
        """The document of each chunk, deleted ones included."""
        return self._column("doc_id")

    def _column(self, name: str) -> pa.ChunkedArray:
        return pa.chunked_array([part for s in self.version.segments for part in map_texts(s)[name].chunks])

    def among(self, ids: pa.Array) -> list[str]:
        """Return those of these ids that documents have which are not deleted."""
        held = pc.is_in(self._ids, ids).to_numpy()
        held[self.version.deleted] = False
        return list(dict.fromkeys(self._ids.filter(pa.array(held)).to_pylist()))

    def chunks_of(self, ids: Sequence[str], held_out: float) -> np.ndarray:
        """Return the chunks of documents, numbered through all segments.

        The parts of a long text file go with it. A part of a long row looks like a row of its own whose id ends in ~2,
        so it must be named too.

        Args:
            ids (`Sequence[str]`): The ids. Documents may be deleted already; ids that none ever had are refused.
            held_out (`float`): Share of documents that were held out, and so have no chunks here.
        """
        sources = self._column("source")  # of a text file and its parts, its id
        without_part = pc.replace_substring_regex(self._ids, PART, "")
        whole = pc.if_else(pc.equal(sources, self._ids), self._ids, without_part)
        found = {*pc.unique(self._ids).to_pylist(), *pc.unique(whole).to_pylist()}
        if unknown := [name for name in ids if name not in found and split_of(name, held_out) == "train"]:
            raise UserError(
                f"no document has the id {unknown[0]!r} ({len(unknown)} of {len(ids)} ids are unknown); "
                f"an id looks like {self._ids[0].as_py()!r}"
            )
        wanted = pa.array(list(ids))
        named, with_parts = (pc.is_in(column, wanted).to_numpy() for column in (self._ids, whole))
        self._refuse_unclear(with_parts & ~named & pc.not_equal(sources, whole).to_numpy())
        return np.flatnonzero(named | with_parts)

    def _refuse_unclear(self, chunks: np.ndarray) -> None:
        """Refuse chunks, given as a mask, of what is either a part or a document of its own."""
        chunks[self.version.deleted] = False
        if unclear := pc.unique(self._ids.filter(pa.array(chunks))).to_pylist():
            raise UserError(
                f"{unclear[0]!r} may be a part of a document to delete or a document of its own ({len(unclear)} such "
                "ids); name it too, and add it again if it is a document of its own"
            )


def chunk_ids(chunks: Path) -> pa.Array:
    """Return the ids of the train documents in a folder of chunks."""
    train = [("split", "=", "train")]
    columns = [
        pq.read_table(path, columns=["doc_id"], filters=train)["doc_id"] for path in sorted(chunks.glob(SHARD_PATTERN))
    ]
    return pc.unique(pa.chunked_array([part for column in columns for part in column.chunks]))
