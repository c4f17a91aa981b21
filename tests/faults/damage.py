"""Flip bytes, truncate and delete files in every kind of folder, and see what the readers make of it."""

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ctxsim_hf.runtime.checks import ADDED_LATER
from faults.children import Outcome, run
from faults.probes import PROBES

DAMAGES = ("flip", "truncate", "delete", "add")
# What a library would load if it were there.
ADDED = ("added_tokens.json", "vocab.txt", "model-00002-of-00002.safetensors", "extra/config.json", "code.py")


@dataclass
class Tally:
    """Outcomes of one kind of folder."""

    outcomes: Counter[str] = field(default_factory=Counter)
    details: list[str] = field(default_factory=list)  # of what should not happen

    def add(self, outcome: Outcome, expected: object, what: str) -> None:
        """Count an outcome, given the answer that an undamaged folder gives."""
        how = outcome.how
        if how == "answer":
            how = "same" if outcome.value == expected else "wrong"
        elif how == "refused" and ("\n" in outcome.value or not outcome.value):
            how = "traceback"
        self.outcomes[how] += 1
        if how in ("wrong", "traceback", "killed"):
            self.details.append(f"{how}: {what}: {str(outcome.value).strip().splitlines()[-1][:300]}")


def damage_folders(root: Path, number: int, seed: int, kinds: list[str] | None = None) -> dict[str, Tally]:
    """Damage every kind of folder about equally often, `number` times in all; two thirds are flips."""
    chosen = {kind: probe for kind, probe in PROBES.items() if kinds is None or kind in kinds}
    return {
        kind: _damage_kind(root, kind, probe, -(-number // len(chosen)), random.Random(f"{seed} {kind}"))
        for kind, probe in chosen.items()
    }


def _damage_kind(
    root: Path, kind: str, probe: Callable[[Path, Path], object], number: int, chooser: random.Random
) -> Tally:
    tally, folder = Tally(), root / kind
    baseline = run(lambda: probe(root, folder))
    if baseline.how != "answer":
        raise RuntimeError(f"the undamaged folder {kind} is not read: {baseline.value}")
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    order: list[Path] = []
    for count in range(number):
        order = order or chooser.sample(files, len(files))  # every file in turn
        path = order.pop()
        damage = "flip" if count % 3 else chooser.choice(DAMAGES[1:])
        if damage == "delete" and path.name in ADDED_LATER:  # a folder without figures is as good
            damage = "truncate"
        with _damaged(path, damage, folder, chooser) as what:
            tally.add(run(lambda: probe(root, folder)), baseline.value, what)
    print(f"{kind}: {dict(tally.outcomes)}", flush=True)
    after = run(lambda: probe(root, folder))
    if after != baseline:
        raise RuntimeError(f"the folder {kind} is not as it was before: {after.value}")
    return tally


@contextmanager
def _damaged(path: Path, damage: str, folder: Path, chooser: random.Random) -> Iterator[str]:
    """Damage a file for a while; yield what was done."""
    kept = folder.with_name(f"{folder.name}.kept")
    shutil.copytree(folder, kept, symlinks=True)
    data = bytearray(path.read_bytes())
    what = f"{damage} {path.relative_to(folder.parent)}"
    if damage == "flip":
        place = chooser.randrange(len(data))
        data[place] ^= 1 << chooser.randrange(8)
        path.write_bytes(data)
        what += f" byte {place}"
    elif damage == "truncate":
        path.write_bytes(data[: chooser.randrange(len(data))])
    elif damage == "delete":
        path.unlink()
    else:
        added = folder / chooser.choice(ADDED)
        if not added.exists():
            added.parent.mkdir(exist_ok=True)
            added.write_bytes(b'{"<new>": 0}')
        what = f"add {added.relative_to(folder.parent)}"
    try:
        yield what
    finally:  # a reader may have repaired it, as it may do with a cache
        shutil.rmtree(folder)
        kept.rename(folder)
