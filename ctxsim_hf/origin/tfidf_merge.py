"""Merge segments of a TF-IDF index into one, the same to the byte as one built of their chunks.

Postings are sorted once more, a range of keys at a time; no text is read.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from tqdm import tqdm

from ctxsim_hf.origin.tfidf_build import Postings, write_postings
from ctxsim_hf.origin.tfidf_segment import TfidfSegment
from ctxsim_hf.runtime.files import whole_folder

POSTINGS_PER_BLOCK = 1 << 20


def merge_tfidf(folder: Path, segments: Sequence[TfidfSegment], deleted: np.ndarray) -> None:
    """Write a segment of all chunks that are not deleted into a folder that does not exist yet.

    Args:
        folder (`Path`): The folder, which is written completely or not at all.
        segments (`Sequence[TfidfSegment]`): The segments in order.
        deleted (`np.ndarray`): Deleted chunks, numbered through all segments.
    """
    live = np.ones(sum(segment.num_chunks for segment in segments), dtype=bool)
    live[deleted] = False
    with whole_folder(folder) as temporary:
        write_postings(temporary, _blocks(segments, live), int(live.sum()), segments[0].ngrams)


def _blocks(segments: Sequence[TfidfSegment], live: np.ndarray) -> Iterator[Postings]:
    """Yield the postings of one range of keys after another."""
    starts = np.cumsum([0, *(segment.num_chunks for segment in segments)]).tolist()
    numbers = (np.cumsum(live) - 1).astype(np.int32)  # among those that are left
    blocks = 1 + sum(len(segment.chunks) for segment in segments) // POSTINGS_PER_BLOCK
    bounds = np.array([number * 2**64 // blocks for number in range(blocks)], np.uint64)  # keys are hashes
    edges = [[*np.searchsorted(segment.keys, bounds).tolist(), len(segment.keys)] for segment in segments]
    for block in tqdm(range(blocks), desc="merge", unit="block", disable=None):
        parts = []
        for segment, start, edge in zip(segments, starts[:-1], edges, strict=True):
            keys, chunks, weights = segment.postings(edge[block], edge[block + 1])
            kept = live[start + chunks]
            parts.append((keys[kept], numbers[start + chunks[kept]], weights[kept]))
        keys, chunks, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.argsort(keys, kind="stable")  # a merge, since each part is sorted; chunks stay in order
        yield Postings(keys[order], chunks[order], weights[order])
