"""What each choice in Origin is worth: Spearman on STSb validation for comparisons, terms, ways to choose contexts,
signals, and TF-IDF beside them. This is how the defaults were chosen (docs/experiments.md).

    python -m benchmarks.origin_variants --origin DIR --data-root DIR [--limit PAIRS] [--only NAME ...]
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from ctxsim_hf.context_models.score_weights import ScoreWeights
from ctxsim_hf.context_models.terms import TERMS
from ctxsim_hf.evaluation.evaluate import TaskResult, evaluate_similarity
from ctxsim_hf.origin.comparison import COMPARISONS
from ctxsim_hf.origin.segments import WORDS
from ctxsim_hf.origin.similarity import OriginSimilarity
from ctxsim_hf.text.letters import LetterCosine
from ctxsim_hf.text.lexical import TfidfCosine

VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    **{f"compared by {name}": {"compare_by": name} for name in COMPARISONS if name != "whitened"},
    "all four terms": {"weights": ScoreWeights()},
    **{f"{term} term alone": {"weights": ScoreWeights(**{t: float(t == term) for t in TERMS})} for term in TERMS},
    "random contexts": {"strategy": "random"},
    "no diversity": {"strategy": "no_diversity"},
    "20 contexts": {"num_contexts": 20},
    "200 contexts": {"num_contexts": 200, "screen_chunks": 1000},
    "20,000 chunks screened": {"screen_chunks": 20_000},
    **{f"and words, weight {weight}": {"signals": {"contexts": 1, "words": weight}} for weight in (0.5, 1.0, 2.0)},
    "the paper's comparison and weights": {"compare_by": "cosine", "weights": ScoreWeights(), "screen_chunks": 20_000},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--origin", required=True, help="folder made by ctxsim index")
    parser.add_argument("--data-root", required=True, help="folder of datasets named by their id")
    parser.add_argument("--limit", type=int, help="so many pairs, spread evenly (default: all)")
    parser.add_argument("--only", nargs="+", choices=VARIANTS, default=list(VARIANTS), help="these variants alone")
    args = parser.parse_args()
    found: dict[str, Any] = {}
    print("| variant | Spearman x100 (95 %) | seconds |\n|---|---|---|")

    def measure(name: str, system: Any) -> None:
        start = time.perf_counter()
        (result,) = evaluate_similarity(system, ["stsb"], "validation", args.data_root, args.limit)
        seconds = time.perf_counter() - start
        found[name] = {"spearman": result.main.value, "pairs": result.pairs, "seconds": seconds}
        print(f"| {name} | {show(result)} | {seconds:.0f} |", flush=True)

    counts = TfidfCosine.load(OriginSimilarity.from_pretrained(args.origin).version.folder / WORDS)
    measure("TF-IDF", counts)
    measure("letters", LetterCosine(counts))
    with tempfile.TemporaryDirectory() as cache:  # variants that judge in the same contexts find them once
        for name in args.only:
            measure(name, OriginSimilarity.from_pretrained(args.origin, cache_folder=cache, **VARIANTS[name]))
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    (folder / "origin_variants.json").write_text(json.dumps(found, indent=2) + "\n", "utf-8")


def show(result: TaskResult) -> str:
    return f"{100 * result.main.value:.1f} ({100 * result.main.low:.1f} to {100 * result.main.high:.1f})"


if __name__ == "__main__":
    main()
