"""Which label-free question orders systems as people do? Figures of `ctxsim evaluate` on both sides -> a table.

    ctxsim evaluate SYSTEM ... --label-free --chunks hausa/chunks --limit 1000 --output free/hausa
    ctxsim evaluate SYSTEM ... --pairs pairs.jsonl --chunks hausa/chunks --split validation --output people/hausa
    python -m benchmarks.yardstick_agreement hausa=free/hausa:people/hausa ...

The same systems, by their names, stand on both sides; a side may be several folders, with commas between. A task
of people is a set. For each question and set: Spearman's correlation of the systems' figures, and the mean over sets.

The last lines tell how far a choice by these figures can be trusted: every two sets are held out in turn, the question
that is best on the others is taken, and judged by the two; then the same with every two corpora, and all their sets.
"""

import argparse
import json
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

MIN_SYSTEMS = 4
KNOWN = "adjacent"  # what others are compared with
HELD_OUT = 2
Figures = dict[str, dict[str, float]]  # task -> system -> figure
Set = tuple[str, str]  # corpus, task


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+", metavar="NAME=DIR:DIR", help="label-free figures, and people's")
    args = parser.parse_args()
    table: dict[str, dict[Set, float]] = {}  # question -> set -> correlation
    for spelling in args.corpora:
        corpus, _, folders = spelling.partition("=")
        free, people = (figures(side.split(",")) for side in folders.split(":"))
        for task, theirs in people.items():
            for question, ours in free.items():
                table.setdefault(question, {})[corpus, task] = agreement(ours, theirs, f"{corpus}, {task}")
    sets = list(dict.fromkeys(each for row in table.values() for each in row))
    print(f"| question | {' | '.join(f'{corpus}, {task}' for corpus, task in sets)} | mean |")
    print("|---" * (len(sets) + 2) + "|")
    for question, row in table.items():
        print(
            f"| {question} | {' | '.join(f'{row[each]:.2f}' for each in sets)} | {np.mean(list(row.values())):.2f} |"
        )
    hold_out(table, "sets", {each: each for each in sets})
    hold_out(table, "corpora", {each: each[0] for each in sets})


def figures(folders: Sequence[str]) -> Figures:
    """The main figure of each task and system, which is the first of its measures."""
    found: Figures = {}
    for folder in folders:
        for row in json.loads(Path(folder, "results.json").read_text("utf-8"))["results"]:
            main = next(value for value in row.values() if isinstance(value, dict))
            found.setdefault(row["task"], {})[row["system"]] = main["value"]
    return found


def agreement(ours: dict[str, float], theirs: dict[str, float], where: str) -> float:
    common = sorted(ours.keys() & theirs.keys())
    if len(common) < MIN_SYSTEMS:
        raise SystemExit(f"{where}: expected {MIN_SYSTEMS} systems or more with figures on both sides, got {common}")
    return float(spearmanr([ours[name] for name in common], [theirs[name] for name in common]).statistic)


def hold_out(table: dict[str, dict[Set, float]], what: str, parts: dict[Set, object]) -> None:
    """Print how the question that some parts choose does on those that are held out."""
    ways = list(combinations(dict.fromkeys(parts.values()), HELD_OUT))
    if len(set(parts.values())) <= HELD_OUT:
        return
    chosen, values, known = [], [], []
    for held in ways:
        left, out = (
            {
                q: float(np.mean([row[each] for each in parts if (parts[each] in held) == side]))
                for q, row in table.items()
            }
            for side in (False, True)
        )
        best = max(left, key=lambda question: left[question])
        chosen.append(best)
        values.append(out[best])
        known.append(out[KNOWN])
    counts = ", ".join(f"{question} {chosen.count(question)}" for question in dict.fromkeys(chosen))
    print(f"\n{HELD_OUT} {what} held out in {len(ways)} ways, the others choose: {counts}")
    print(f"mean correlation on what was held out: {np.mean(values):.2f}; {KNOWN}: {np.mean(known):.2f}")


if __name__ == "__main__":
    main()
