"""The folder of `ctxsim harvest-vectors`: sentences with vectors whose dot products are an origin's similarities.

| file | holds |
|---|---|
| data/<split>-*.parquet | `sentence`, and `vector`: dense signals side by side, scaled by the root of their shares |
| sparse-<split>.npz | the sparse signals, likewise: a matrix of scipy with a row for each sentence |
| neighbours-<split>.npy | places of the nearest other sentences of the split, the nearest first |
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.sparse import csr_array, load_npz, save_npz

from ctxsim_hf.harvest.nearest import nearest, pair_products
from ctxsim_hf.runtime.files import writing

VECTOR_SPLITS = ("train", "validation")
NEIGHBOURS = 8
SCHEMA = pa.schema({"sentence": pa.string(), "vector": pa.list_(pa.float32())})


@dataclass(frozen=True)
class TeacherVectors:
    """The sentences of a split and their vectors."""

    sentences: list[str]
    dense: np.ndarray  # (sentences, numbers), float32
    sparse: csr_array  # (sentences, terms), float32
    neighbours: np.ndarray  # (sentences, neighbours)

    @classmethod
    def load(cls, folder: Path, split: str) -> "TeacherVectors":
        """Open a split of a finished folder."""
        sentences, dense = read_dense(vector_files(folder, split))
        sparse = csr_array(load_npz(folder / f"sparse-{split}.npz"))
        return cls(sentences, dense, sparse, np.load(folder / f"neighbours-{split}.npy", allow_pickle=False))

    def similarity(self, rows: np.ndarray) -> np.ndarray:
        """Return the similarity of every two of these sentences, (rows, rows)."""
        dense, sparse = self.dense[rows], self.sparse[rows]
        return np.clip(dense @ dense.T + (sparse @ sparse.T).toarray(), -1, 1)

    def pair_similarity(self, pairs: np.ndarray) -> np.ndarray:
        """Return the similarity of each of these pairs of sentences, (pairs,)."""
        return np.clip(pair_products(self.dense, self.sparse, *pairs.T), -1, 1)


def vector_files(folder: Path, split: str) -> list[Path]:
    """Return the parquet files of a split."""
    return sorted(folder.glob(f"data/{split}-*.parquet"))


def write_dense(path: Path, sentences: Sequence[str], vectors: np.ndarray) -> None:
    """Write one parquet file."""
    ends = pa.array(np.arange(len(sentences) + 1) * vectors.shape[1], pa.int32())
    lists = pa.ListArray.from_arrays(ends, pa.array(vectors.astype(np.float32).ravel()))
    with writing(path) as temporary:
        table = pa.table([pa.array(sentences, pa.string()), lists], schema=SCHEMA)
        pq.write_table(table, temporary, compression="zstd", write_page_checksum=True)


def read_dense(paths: Sequence[Path]) -> tuple[list[str], np.ndarray]:
    """Return the sentences of parquet files and their dense vectors."""
    table = pa.concat_tables(pq.read_table(path) for path in paths)
    numbers = np.concatenate([chunk.flatten().to_numpy() for chunk in table["vector"].chunks])
    return table["sentence"].to_pylist(), numbers.reshape(table.num_rows, -1)


def write_rest(folder: Path, split: str, dense: np.ndarray, sparse: csr_array) -> None:
    """Write the sparse vectors of a split and its neighbours."""
    with writing(folder / f"sparse-{split}.npz") as temporary, temporary.open("wb") as file:
        save_npz(file, sparse, compressed=False)
    with writing(folder / f"neighbours-{split}.npy") as temporary, temporary.open("wb") as file:
        np.save(file, nearest(dense, sparse, NEIGHBOURS), allow_pickle=False)
