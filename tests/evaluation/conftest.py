"""Made-up tasks where the real ones are expected: a folder of data sets named by their ids."""

import json
from pathlib import Path

import pytest

TRIPLETS = [{"anchor": f"a{i}", "positive": f"p{i}", "negative": f"n{i}"} for i in (1, 2, 3)]
PAIRS = [
    ("a cat sleeps", "a cat sleeps", 5.0),
    ("a cat sleeps", "a cat eats", 3.0),
    ("a red bird", "the red bird sings", 3.5),
    ("rain", "some dog barks", 0.0),
    ("7 dogs bark", "8 dogs bark", 2.0),
    ("a bird", "the sea", 0.5),
]


SECTIONS_CARD = """---
configs:
- config_name: triplet
  data_files:
  - split: validation
    path: triplet/validation.jsonl
---
"""


def write_rows(path: Path, rows: list[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, rows)))


@pytest.fixture
def data_root(tmp_path: Path) -> Path:
    """STSb with twelve pairs for validation and six for test, sections with three triplets, and two small corpora."""
    rows: list[dict[str, object]] = [{"sentence1": a, "sentence2": b, "score": score} for a, b, score in PAIRS]
    root = tmp_path / "data"
    write_rows(root / "mteb/stsbenchmark-sts/validation.jsonl", rows + rows)
    write_rows(root / "mteb/stsbenchmark-sts/test.jsonl", rows)
    sections = root / "sentence-transformers/wikipedia-sections"
    write_rows(sections / "triplet/validation.jsonl", [dict(row) for row in TRIPLETS])
    (sections / "README.md").write_text(SECTIONS_CARD)
    write_rows(root / "corpora/one/train.jsonl", [{"id": 1, "text": "A cat sleeps. A dog barks.\n\nA bird sings."}])
    write_rows(root / "corpora/two/train.jsonl", [{"id": 1, "text": "It rained. The sea was red. The end."}])
    return root
