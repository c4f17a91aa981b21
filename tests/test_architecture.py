"""Rooms import only from rooms above them in the flow."""

import ast
from pathlib import Path

import ctxsim_hf

PACKAGE = Path(ctxsim_hf.__file__).parent
FLOW = [
    *("runtime", "text", "train", "context_models", "encoder", "origin", "harvest"),
    *("surrogate", "evaluation", "hub", "recipes"),
]


def imported_rooms(path: Path) -> set[str]:
    names: set[str] = set()
    module = ast.parse(path.read_text("utf-8"))
    # A module may hand itself to the command line when it is run, which is not an import of the room.
    module.body = [node for node in module.body if not (isinstance(node, ast.If) and "__main__" in ast.unparse(node))]
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module)
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
    return {name.split(".")[1] for name in names if name.startswith("ctxsim_hf.")}


def test_every_room_is_in_the_flow() -> None:
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert rooms <= set(FLOW)


def test_rooms_import_only_from_above() -> None:
    for position, room in enumerate(FLOW):
        for path in (PACKAGE / room).rglob("*.py"):
            assert imported_rooms(path) - {"registration", "cli"} <= set(FLOW[: position + 1]), path
