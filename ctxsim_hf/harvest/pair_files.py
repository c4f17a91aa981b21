"""Turn blocks of a plan into parquet files of labelled pairs, and summarise a folder of them."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ctxsim_hf.harvest.drawing import PAIR_SPLITS, Drawing
from ctxsim_hf.harvest.plan import Block
from ctxsim_hf.origin.similarity import OriginSimilarity
from ctxsim_hf.runtime.files import writing

SCHEMA = pa.schema(
    {
        "sentence1": pa.string(),
        "sentence2": pa.string(),
        "score": pa.float32(),
        "spread": pa.float32(),  # of the score, when contexts are drawn again
        "drawn": pa.string(),  # how: see drawing.py
        "chunk_id1": pa.string(),
        "chunk_id2": pa.string(),
    }
)


def write_block(
    path: Path,
    block: Block,
    drawing: Drawing,
    origin: OriginSimilarity,
    mode: str,
    advance: Callable[[int], Any],
) -> None:
    """Label the pairs of a block and write them in the order of their hashes, which mixes the groups.

    Args:
        path (`Path`): The file to write.
        block (`Block`): Groups of sentences, and how many of their pairs to take.
        drawing (`Drawing`): The drawing that the groups come from.
        origin (`OriginSimilarity`): Labels the pairs.
        mode (`str`): `pair` or `group`; see [`OriginSimilarity.label`].
        advance (`Callable[[int], Any]`): Called with the number of pairs of each labelled group.
    """
    tables, hashes = [], []
    for counted in block.groups:
        pairs = drawing.pairs(counted.group).first(counted.num_pairs)
        places = origin.index.chunk_of(counted.group.sentences)
        sentences = [chunk.sentences[position] for chunk, position in places]
        scores, spreads = origin.label(sentences, pairs.members, mode)
        first, second = pairs.members.T
        chunk_ids = [chunk.chunk_id for chunk, _ in places]
        columns = [
            *([sentences[member] for member in side] for side in (first, second)),
            *(scores.astype(np.float32), spreads.astype(np.float32), pairs.drawn.tolist()),
            *([chunk_ids[member] for member in side] for side in (first, second)),
        ]
        tables.append(pa.table(columns, schema=SCHEMA))
        hashes.append(pairs.hashes)
        advance(counted.num_pairs)
    table = pa.concat_tables(tables).take(np.argsort(np.concatenate(hashes), kind="stable"))
    with writing(path) as temporary:
        pq.write_table(table, temporary, compression="zstd", write_page_checksum=True)


def is_sound(path: Path) -> bool:
    """Return whether a file can be read to its end and its checksums hold."""
    try:
        pq.read_table(path, page_checksum_verification=True)
    except (OSError, pa.ArrowException):
        return False
    return True


def describe_pairs(paths: Sequence[Path]) -> dict[str, Any]:
    """Count the pairs and distinct sentences of each split; for each way of drawing give pairs, mean score and spread.

    Files are read one at a time, since no sentence is in two of them.
    """
    pairs, sentences = Counter[str](), Counter[str]()
    drawn: Counter[str] = Counter()
    sums: defaultdict[str, np.ndarray] = defaultdict(lambda: np.zeros(2))
    for path in sorted(paths):
        table = pq.read_table(path)
        split = path.name.split("-")[0]
        pairs[split] += table.num_rows
        sentences[split] += len(pc.unique(pa.chunked_array([*table["sentence1"].chunks, *table["sentence2"].chunks])))
        ways = np.array(table["drawn"].to_pylist())
        labels = np.stack([table["score"].to_numpy(), table["spread"].to_numpy()], axis=1).astype(np.float64)
        for way in np.unique(ways).tolist():
            drawn[way] += int((ways == way).sum())
            sums[way] += labels[ways == way].sum(0)
    order = sorted(drawn, key=lambda way: (not way.startswith("near"), len(way), way))
    return {
        "pairs": {split: pairs[split] for split in PAIR_SPLITS},
        "sentences": {split: sentences[split] for split in PAIR_SPLITS},
        "drawn": {way: drawn[way] for way in order},
        "mean_score": {way: float(sums[way][0] / drawn[way]) for way in order},
        "mean_spread": {way: float(sums[way][1] / drawn[way]) for way in order},
    }
