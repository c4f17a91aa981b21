"""Print what came of the faults."""

import importlib
from collections import Counter
from collections.abc import Sequence

from ctxsim_hf.verbs import VERBS
from faults.command_lines import WITHOUT_OUTPUT
from faults.damage import Tally

DAMAGED = ("refused", "same", "wrong", "traceback", "killed")


def import_everything() -> None:
    """Import what the verbs import, without running anything."""
    for verb in VERBS.values():
        importlib.import_module(verb.module)
    for name in ("datasets", "faiss", "onnxruntime", "onnx", "torch.onnx", "transformers.models.roberta"):
        importlib.import_module(name)


def report_damages(tallies: dict[str, Tally]) -> int:
    """Print a table, a line for each kind of folder, and return the number of wrong answers."""
    _table("damaged folder", DAMAGED, {kind: tally.outcomes for kind, tally in tallies.items()})
    _details(list(tallies.values()))
    return sum(tally.outcomes["wrong"] for tally in tallies.values())


def report_kills(tallies: dict[str, tuple[Tally, Tally]]) -> int:
    """Print a table, a line for each verb, and return the number of losses."""
    rows = {
        verb: Counter({"kill, same": killed.outcomes["same"], "kill, lost": killed.outcomes["lost"]})
        + Counter({"two, same": raced.outcomes["same"], "two, lost": raced.outcomes["lost"]})
        for verb, (killed, raced) in tallies.items()
    }
    _table("verb", ("kill, same", "kill, lost", "two, same", "two, lost"), rows)
    for verb in VERBS:
        if not any(way.startswith(verb) for way in tallies):
            print(f"{verb}: {WITHOUT_OUTPUT.get(verb, 'left out')}")
    both = [tally for pair in tallies.values() for tally in pair]
    _details(both)
    return sum(tally.outcomes["lost"] for tally in both)


def _table(heading: str, columns: Sequence[str], rows: dict[str, Counter[str]]) -> None:
    rows = rows | {"all": sum(rows.values(), Counter())}
    width = max(map(len, [heading, *rows]))
    print(f"\n{heading:<{width}}  " + "  ".join(columns))
    for name, outcomes in rows.items():
        print(f"{name:<{width}}  " + "  ".join(f"{outcomes[column]:>{len(column)}}" for column in columns))


def _details(tallies: Sequence[Tally]) -> None:
    for tally in tallies:
        for detail in tally.details:
            print(f"  {detail}")
    print(flush=True)
