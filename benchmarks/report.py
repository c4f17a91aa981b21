"""One way to show a benchmark: a table of ratios on the screen, everything in a JSON file."""

import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def report(name: str, rows: Sequence[Mapping[str, Any]], details: Mapping[str, Any]) -> None:
    """Print rows of (measure, ratio, wanted) and write them with the raw figures to benchmarks/results/<name>.json."""
    print(f"\n| {name} | ratio | wanted |\n|---|---|---|")
    for row in rows:
        print(f"| {row['measure']} | {row['ratio']:.2f} | {row['wanted']} |")
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    result = {"machine": platform.processor() or platform.machine(), "ratios": list(rows), "details": dict(details)}
    (folder / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n", "utf-8")
