"""Stream chunks into the files of a segment of a TF-IDF index.

Records of (key, chunk, count) are written to bucket files by the top bits of the key. Each bucket is sorted, and
together they give all terms in the order of their keys. Memory holds a block of chunks and a bucket. Nothing that is
written depends on chunks of other segments.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import whole_folder, write_json
from ctxsim_hf.text.word_ngrams import NgramKeys

FORMAT = 3  # raise it when the meaning of the arrays changes
ABOUT_FILE = "index.json"
ARRAYS: dict[str, type[np.generic]] = {  # TfidfSegment says what they mean
    "keys": np.uint64,
    "starts": np.int64,
    "chunks": np.int32,
    "weights": np.float32,
    "row_terms": np.int64,
    "rows": np.float32,
}

ROW_SHARE = 1 / 8  # of the chunks; a row takes at most four times the space of the postings of its term
_RECORD = np.dtype([("key", np.uint64), ("chunk", np.int32), ("count", np.int32)])


class Postings(NamedTuple):
    """Which chunks hold which terms: sorted by keys, the chunks of a term ascending."""

    keys: np.ndarray  # (postings,)
    chunks: np.ndarray  # (postings,)
    weights: np.ndarray  # (postings,) 1 + ln tf


def build_segment(
    chunks: Iterable[Sequence[str]],
    folder: Path,
    ngrams: str = "uni+bigrams",
    chunks_per_block: int = 2000,
    buckets: int = 256,
    row_share: float = ROW_SHARE,
) -> None:
    """Write the segment of chunks, each a sequence of sentences, into a folder that does not exist yet.

    Args:
        chunks (`Iterable[Sequence[str]]`): The chunks, read once and numbered in their order.
        folder (`Path`): The folder, which is written completely or not at all.
        ngrams (`str`): Terms: `uni+bigrams`, `words`, or `bigrams` of words.
        chunks_per_block (`int`): Chunks to hold at a time. The bytes written do not depend on it.
        buckets (`int`): Files to sort one after another. The bytes written do not depend on it.
        row_share (`float`): A term in at least this share of the chunks is kept as a row too.
    """
    keys_of = NgramKeys(ngrams)
    if folder.exists():
        raise UserError(f"{str(folder)!r} exists already; remove it or choose another folder for the index")
    with whole_folder(folder) as temporary:
        paths = [temporary / f"buckets/{number:06d}" for number in range(buckets)]
        (temporary / "buckets").mkdir()
        num_chunks = _fill_buckets(paths, chunks, keys_of, chunks_per_block)
        write_postings(temporary, _sorted_buckets(paths), num_chunks, ngrams, row_share)
        (temporary / "buckets").rmdir()


def _fill_buckets(
    paths: Sequence[Path], chunks: Iterable[Sequence[str]], keys_of: NgramKeys, chunks_per_block: int
) -> int:
    """Append the records of all chunks to the buckets; return the number of chunks."""
    for path in paths:
        path.touch()
    firsts = np.array([number * 2**64 // len(paths) for number in range(len(paths))], dtype=np.uint64)
    stream = iter(tqdm(chunks, desc="index", unit="chunk", disable=None))
    num_chunks = 0
    while block := list(islice(stream, chunks_per_block)):
        keys, sentence_of = keys_of([sentence for chunk in block for sentence in chunk])
        chunk_of = np.repeat(np.arange(num_chunks, num_chunks + len(block)), [len(chunk) for chunk in block])
        num_chunks += len(block)
        order = np.argsort(keys, kind="stable")  # chunks stay in order
        keys, holders, counts = run_lengths(keys[order], chunk_of[sentence_of[order]])
        records = np.empty(len(keys), _RECORD)
        records["key"], records["chunk"], records["count"] = keys, holders, counts
        for path, part in zip(paths, np.split(records, np.searchsorted(keys, firsts[1:])), strict=True):
            with path.open("ab") as file:  # reopened, since so many may not be open at once
                file.write(part.tobytes())
    if not num_chunks:
        raise UserError("no chunk to index: expected at least one")
    return num_chunks


def run_lengths(keys: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct pairs among sorted ones, and how often each occurs."""
    new = np.ones(len(keys), dtype=bool)
    new[1:] = (keys[1:] != keys[:-1]) | (others[1:] != others[:-1])
    starts = np.flatnonzero(new)
    return keys[starts], others[starts], np.diff(starts, append=len(keys))


def _sorted_buckets(paths: Sequence[Path]) -> Iterator[Postings]:
    for path in tqdm(paths, desc="sort", unit="bucket", disable=None):
        records = np.fromfile(path, _RECORD)
        path.unlink()
        records = records[np.argsort(records["key"], kind="stable")]
        yield Postings(records["key"], records["chunk"], 1 + np.log(records["count"]))


def write_postings(
    folder: Path, blocks: Iterable[Postings], num_chunks: int, ngrams: str, row_share: float = ROW_SHARE
) -> None:
    """Write the files of a segment from its postings, whose keys ascend from block to block."""
    with contextlib.ExitStack() as stack:
        files = {
            name: stack.enter_context(
                contextlib.closing(_GrowingArray(folder, name, (num_chunks,) if name == "rows" else ()))
            )
            for name in ARRAYS
        }
        files["starts"].append(np.zeros(1))
        for block in blocks:
            keys, _, df = run_lengths(block.keys, block.keys)
            has_row = df >= row_share * num_chunks
            in_row = np.repeat(has_row, df)
            rows = np.zeros((has_row.sum(), num_chunks), np.float32)
            rows[np.repeat(np.arange(len(rows)), df[has_row]), block.chunks[in_row]] = block.weights[in_row]
            files["rows"].append(rows)
            files["row_terms"].append(files["keys"].length + np.flatnonzero(has_row))
            files["starts"].append(files["chunks"].length + np.cumsum(df))
            files["keys"].append(keys)
            files["chunks"].append(block.chunks)
            files["weights"].append(block.weights)
    write_json(folder / ABOUT_FILE, {"format": FORMAT, "ngrams": ngrams, "num_chunks": num_chunks})


class _GrowingArray:
    """A .npy file to append to; NumPy leaves room in the header for the length, which is known at the end."""

    def __init__(self, folder: Path, name: str, row_shape: tuple[int, ...]) -> None:
        self.length = 0
        self._dtype = np.dtype(ARRAYS[name])
        self._row_shape = row_shape
        self._file = (folder / f"{name}.npy").open("wb")
        self._write_header()

    def _write_header(self) -> None:
        shape = (self.length, *self._row_shape)
        header = {"descr": self._dtype.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self._file, header)

    def append(self, values: np.ndarray) -> None:
        self._file.write(np.ascontiguousarray(values, self._dtype).data)
        self.length += len(values)

    def close(self) -> None:
        self._file.seek(0)
        self._write_header()
        self._file.close()
