"""Pairs in the form of a harvest, with a planted truth: sentences of one topic are alike."""

import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

GROUP = 10
ALIKE, UNLIKE = 0.7, 0.1  # and some noise


def sentences_by_topic(corpus: Path) -> list[list[str]]:
    """Of the made-up corpus of the training tests, whose documents have six topics in turn."""
    topics: list[list[str]] = [[] for _ in range(6)]
    for number, line in enumerate((corpus / "texts.jsonl").read_text().splitlines()):
        topics[number % 6] += json.loads(line)["text"].split("\n\n")
    return topics


def write_pairs(corpus: Path, folder: Path, train_groups: int = 40) -> Path:
    """Two files of train, one of validation; no sentence is in two groups, and pairs are shuffled in each file."""
    chooser = random.Random(0)
    pool = [(text, topic) for topic, texts in enumerate(sentences_by_topic(corpus)) for text in dict.fromkeys(texts)]
    chooser.shuffle(pool)
    (folder / "data").mkdir(parents=True)
    for name, groups in (("train-0", train_groups // 2), ("train-1", train_groups // 2), ("validation-0", 8)):
        rows = []
        for _ in range(groups):
            group = [pool.pop() for _ in range(GROUP)]
            rows += [_row(group[i], group[j], chooser) for i in range(GROUP) for j in range(i)]
        chooser.shuffle(rows)
        pq.write_table(pa.Table.from_pylist(rows), folder / "data" / f"{name}.parquet")
    return folder


def _row(first: tuple[str, int], second: tuple[str, int], chooser: random.Random) -> dict[str, object]:
    score = (ALIKE if first[1] == second[1] else UNLIKE) + chooser.gauss(0, 0.05)
    return {"sentence1": first[0], "sentence2": second[0], "score": score, "spread": chooser.uniform(0.02, 0.2)}
