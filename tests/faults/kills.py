"""Kill every verb that writes at random moments, run it again, and let two of it write one output."""

import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from small_harvest import contents

from ctxsim_hf.runtime.working import MARK, SUFFIX
from faults.children import Child, Outcome, command, run, run_and_kill, run_command
from faults.command_lines import CHANGED, ENDINGS, TIMED, Words, commands
from faults.damage import Tally

# What a user may have beside an output, and older versions took for their own.
NEIGHBOURS = (
    "out.partial/mine.txt",
    "out.replaced/mine.txt",
    "out.shards/mine.txt",
    "out.lock",
    "out.tmp",
    ".out.tmp",
)


# What the second of two writers is told, or, by verbs that do nothing twice, after the first one has finished.
REFUSALS = ("another run is writing", "exists and may hold labels", "already; delete it first", "has the id")


class Trial:
    """One verb with an undisturbed run to compare with."""

    def __init__(self, root: Path, verb: str) -> None:
        self.root, self.verb = root, verb
        self.words: Callable[[Path], Words] = commands(root)[verb]
        self.place = root / "kills" / verb.replace(" ", "-")
        reference = self._fresh("reference")
        self.seconds = run_command(*self.words(reference))
        self.expected = self._left(reference)

    def kill(self, chooser: random.Random) -> str:
        """Kill it once, run it again, and say what came of it: same, or lost and why."""
        output = self._fresh("killed")
        run_and_kill(self.words(output), self.seconds, chooser)
        finished = self._left(output) == self.expected
        if finished and self.verb.startswith("search"):  # which would add the same again
            return "same"
        if not finished or output.with_name(output.name + SUFFIX).exists():
            again = run(command(self.words(output)))
            if again.how != "answer":
                return f"lost: {again.value}"
        return self._compare(output)

    def race(self) -> str:
        """Start it twice at once: one may be refused, and the output must be whole."""
        output = self._fresh("raced")
        children = [Child(command(self.words(output))) for _ in range(2)]
        outcomes = [child.wait() for child in children]
        if unexpected := [outcome for outcome in outcomes if not _is_fair(outcome)]:
            return f"lost: {unexpected[0].value}"
        if all(outcome.how == "refused" for outcome in outcomes):
            return f"lost: both were refused: {outcomes[0].value}"
        if self.verb in ("search", "search --add more") and all(outcome.how == "answer" for outcome in outcomes):
            return "same"  # one after the other, both have added
        return self._compare(output)

    def _compare(self, output: Path) -> str:
        found = self._left(output)
        different = sorted(n for n in found.keys() | self.expected.keys() if found.get(n) != self.expected.get(n))
        neighbours = {name: (output.parent / name).read_text() for name in NEIGHBOURS}
        if set(neighbours.values()) != {"mine"}:
            return f"lost: a neighbour of the output: {neighbours}"
        kept = {*(name.split("/")[0] for name in NEIGHBOURS), output.name}
        left = [path for path in output.parent.iterdir() if path.name not in kept]
        if any({inner.name for inner in path.iterdir()} - {MARK} for path in left):  # that of a refused run may stay
            return f"lost: it leaves {left[0].name} behind"
        return f"lost: {different[0]} of {len(different)} files differ" if different else "same"

    def _left(self, output: Path) -> dict[str, bytes]:
        if output.is_file():
            return {output.name: output.read_bytes()}
        found = contents(output) if output.exists() else {}
        return dict.fromkeys(found, b"") if self.verb in TIMED else found

    def _fresh(self, name: str) -> Path:
        """Return an output in a new folder, with neighbours."""
        folder = self.place / name
        shutil.rmtree(folder, ignore_errors=True)
        for neighbour in NEIGHBOURS:
            (folder / neighbour).parent.mkdir(parents=True, exist_ok=True)
            (folder / neighbour).write_text("mine")
        if source := CHANGED.get(self.verb):
            shutil.copytree(self.root / source, folder / "out", ignore=shutil.ignore_patterns("README.md"))
        return folder / f"out{ENDINGS.get(self.verb, '')}"


def _is_fair(outcome: Outcome) -> bool:
    return outcome.how == "answer" or (outcome.how == "refused" and any(said in outcome.value for said in REFUSALS))


def kill_verbs(root: Path, number: int, seed: int, verbs: list[str] | None = None) -> dict[str, tuple[Tally, Tally]]:
    """Kill the verbs about equally often, `number` times in all, and race each once; return both tallies."""
    chosen = [verb for verb in commands(root) if verbs is None or verb in verbs]
    quick = [verb for verb in chosen if verb not in TIMED]
    chooser, found = random.Random(seed), {}
    before = _digests(root)
    for verb in chosen:
        times = -(-number // max(1, len(quick))) if verb in quick else 1
        trial = Trial(root, verb)
        killed, raced = Tally(), Tally()
        for _ in range(times):
            _count(killed, trial.kill(chooser), f"kill {verb}")
        _count(raced, trial.race(), f"two {verb}")
        found[verb] = (killed, raced)
        print(f"{verb}: killed {dict(killed.outcomes)}, two at once {dict(raced.outcomes)}", flush=True)
    changed = {name for name, digest in _digests(root).items() if before.get(name) != digest}
    if changed:
        found["inputs"] = (Tally(Counter({"lost": len(changed)}), [f"lost: {min(changed)} changed"]), Tally())
    return found


def _count(tally: Tally, what: str, where: str) -> None:
    how = what.split(":")[0]
    tally.outcomes[how] += 1
    if how != "same":
        tally.details.append(f"{where}: {what}"[:400])


def _digests(root: Path) -> dict[str, int]:
    """Return what tells whether an input has changed."""
    skipped = ("kills", "home", "cache")
    files = [path for path in root.rglob("*") if path.is_file() and path.relative_to(root).parts[0] not in skipped]
    return {str(path): hash(path.read_bytes()) for path in files}
