"""Read the imports of the package, room by room: print who imports whom, and draw it (`make house`).

A room is a folder of ctxsim_hf; a module beside the rooms is a room of its own. Imports at the top of a module,
under TYPE_CHECKING and inside functions are counted apart, because the last two can hide a cycle.

    python docs/house.py [--picture docs/house.svg]
"""

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parents[1] / "ctxsim_hf"
# A room imports only from itself and from rooms before it.
FLOW = (
    *("runtime", "text", "train", "context_models", "encoder", "origin", "harvest"),
    *("surrogate", "mining", "evaluation", "hub", "recipes", "page"),
)
# Modules beside the rooms that stand above all of them: no room imports these.
ABOVE_ALL = ("api", "cli", "__main__")
TOP, TYPES, LATE = "top", "types", "late"
STYLES = {TOP: "-", TYPES: ":", LATE: "--"}
BEND = 0.6  # of an arrow


class Import(NamedTuple):
    source: str  # a module, such as ctxsim_hf.text.chunks
    target: str
    kind: str  # TOP, TYPES or LATE
    line: int

    def __str__(self) -> str:
        return f"{self.source}:{self.line} imports {self.target} ({self.kind})"


def room_of(module: str) -> str:
    """Return the room of a module, or the name of a module that stands beside the rooms."""
    return module.split(".")[1] if "." in module else module


def read_imports(package: Path = PACKAGE) -> list[Import]:
    """Return every import of one module of the package by another."""
    modules = {_module_name(path, package): path for path in sorted(package.rglob("*.py"))}
    found = []
    for name, path in modules.items():
        for node, kind in _import_nodes(ast.parse(path.read_text("utf-8")).body, TOP):
            for target in _targets(node, modules.keys()):
                # The package itself is imported before any of its modules, so an import of it (for its version) is no
                # edge of its own.
                if target not in (name, package.name):
                    found.append(Import(name, target, kind, node.lineno))
    return found


def _module_name(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _import_nodes(body: Iterable[ast.AST], kind: str) -> Iterator[tuple[ast.Import | ast.ImportFrom, str]]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, kind
        elif isinstance(node, ast.If) and "__main__" in ast.unparse(node.test):
            continue  # a module that hands itself to the command line when it is run does not import it
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _import_nodes(node.body, TYPES)
            yield from _import_nodes(node.orelse, kind)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _import_nodes(node.body, LATE)
        else:
            yield from _import_nodes(ast.iter_child_nodes(node), kind)


def _targets(node: ast.Import | ast.ImportFrom, modules: Iterable[str]) -> set[str]:
    """Return the modules of the package that a statement imports: `from a.b import c` may mean the module a.b.c."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names} & set(modules)
    names = {f"{node.module}.{alias.name}" for alias in node.names}
    found = names & set(modules)
    return found | ({node.module} & set(modules) if names - found else set())


def count_by_room(imports: Iterable[Import]) -> Counter[tuple[str, str, str]]:
    """Count imports by room, imported room and kind; those within a room are left out."""
    rooms = ((room_of(found.source), room_of(found.target), found.kind) for found in imports)
    return Counter(key for key in rooms if key[0] != key[1])


def against_the_flow(imports: Iterable[Import]) -> list[Import]:
    """Return the imports of a room by one that comes before it in the flow, or of a module above all rooms."""
    found = []
    for each in imports:
        source, target = room_of(each.source), room_of(each.target)
        if source not in FLOW or source == target:
            continue
        if target in ABOVE_ALL or (target in FLOW and FLOW.index(target) > FLOW.index(source)):
            found.append(each)
    return found


def cycles(imports: Iterable[Import]) -> list[list[str]]:
    """Return the groups of modules that import each other, directly or through others, by imports of any kind."""
    targets: dict[str, set[str]] = {}
    for each in imports:
        targets.setdefault(each.source, set()).add(each.target)
    reached = {module: _reachable(module, targets) for module in targets}
    groups = {
        tuple(sorted({module, *(other for other in seen if module in reached.get(other, ()))}))
        for module, seen in reached.items()
        if module in seen
    }
    return [list(group) for group in sorted(groups)]


def _reachable(module: str, targets: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = [*targets[module]]
    while waiting:
        if (other := waiting.pop()) not in seen:
            seen.add(other)
            waiting += targets.get(other, ())
    return seen


def describe(imports: list[Import]) -> str:
    """Return the table of rooms, what goes against the flow, and the cycles, as lines."""
    counts, lines = count_by_room(imports), []
    for source in _rooms(imports):
        for target in _rooms(imports):
            kinds = [f"{counts[source, target, kind]} {kind}" for kind in STYLES if counts[source, target, kind]]
            if kinds:
                lines.append(f"{source:<16} {target:<16} {', '.join(kinds)}")
    wrong, groups = against_the_flow(imports), cycles(imports)
    lines += ["", f"against the flow: {len(wrong)}", *(f"  {each}" for each in wrong)]
    lines += [f"cycles: {len(groups)}"]
    for group in groups:
        lines.append(f"  {', '.join(group)}")
        lines += [f"    {each}" for each in imports if each.source in group and each.target in group]
    return "\n".join(lines)


def _rooms(imports: Iterable[Import]) -> list[str]:
    """Return the rooms in the order of the flow, and below them the modules beside the rooms."""
    found = {room_of(name) for each in imports for name in (each.source, each.target)}
    return [*(room for room in FLOW if room in found), *sorted(found - set(FLOW))]


def draw(imports: list[Import], path: Path) -> None:
    """Draw the rooms from top to bottom, an arrow with a count from each room to those it imports: imports at the top
    of modules and under TYPE_CHECKING on the left, imports inside functions on the right."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams |= {"svg.hashsalt": "ctxsim_hf", "svg.fonttype": "none"}  # equal imports, equal bytes
    from matplotlib import pyplot

    rooms, counts = _rooms(imports), count_by_room(imports)
    figure, axes = pyplot.subplots(figsize=(11, 0.9 * len(rooms)))
    axes.set(xlim=(-6, 6), ylim=(-len(rooms), 1), aspect="equal")
    axes.axis("off")
    for place, room in enumerate(rooms):
        box = {"boxstyle": "round,pad=0.5", "facecolor": "#dde8f5" if room in FLOW else "#f2f2f2", "edgecolor": "k"}
        axes.text(0, -place, room, ha="center", va="center", bbox=box, zorder=3)
    wrong = {(room_of(each.source), room_of(each.target)) for each in against_the_flow(imports)}
    for (source, target, kind), number in sorted(counts.items()):
        start, end = -rooms.index(source), -rooms.index(target)
        side = 1 if kind == LATE else -1
        colour = "black" if (source, target) in wrong else pyplot.get_cmap("tab10")(rooms.index(target) % 10)
        bend = BEND if (end > start) == (side > 0) else -BEND
        arrow = {"arrowstyle": "->", "connectionstyle": f"arc3,rad={bend}", "linestyle": STYLES[kind], "color": colour}
        axes.annotate("", (0.95 * side, end), (0.95 * side, start), arrowprops=arrow)
        # A quarter of the way along, where few arrows run, an arc has three eighths of its control point's distance.
        out, along = 0.95 + abs(end - start) * BEND * 0.375, start + (end - start) / 4
        label = {"boxstyle": "round,pad=0.1", "facecolor": "w", "edgecolor": "none"}
        axes.text(side * out, along, str(number), ha="center", va="center", fontsize=7, color=colour, bbox=label)
    axes.set_title(
        "imports by room: solid at the top, dotted for types, dashed inside functions, black against the flow",
        fontsize=9,
    )
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    pyplot.close(figure)


def main(argv: list[str] | None = None) -> int:
    """Print the table and draw the picture; exit with 1 if an import goes against the flow."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", type=Path, default=Path(__file__).with_suffix(".svg"), help="file to draw into")
    imports = read_imports()
    draw(imports, parser.parse_args(argv).picture)
    print(describe(imports))
    return int(bool(against_the_flow(imports)))


if __name__ == "__main__":
    sys.exit(main())
