"""Rooms import only from rooms above them in the flow, and no modules import each other."""

from pathlib import Path

import house
import pytest


def test_every_room_is_in_the_flow() -> None:
    rooms = {path.parent.name for path in house.PACKAGE.glob("*/__init__.py")}
    assert rooms == set(house.FLOW)


def test_rooms_import_only_from_above() -> None:
    assert [str(found) for found in house.against_the_flow(house.read_imports())] == []


def test_no_modules_import_each_other() -> None:
    assert house.cycles(house.read_imports()) == []


@pytest.fixture
def small_package(tmp_path: Path) -> Path:
    """Write two rooms with imports of each kind, one against the flow, and a cycle that types and functions hide."""
    package = tmp_path / "small"
    files = {
        "__init__.py": "version = 1",
        "cli.py": "from small.text import words",
        "runtime/__init__.py": "",
        "runtime/stage.py": "import small\n\ndef read():\n    from small.text.words import split",
        "text/__init__.py": "",
        "text/words.py": "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from small.text import rules",
        "text/rules.py": "from small.runtime import stage\nfrom small.text.words import split",
        "text/__main__.py": "if __name__ == '__main__':\n    from small.cli import main",
    }
    for name, source in files.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(source)
    return package


def test_what_is_found_in_a_small_package(small_package: Path, tmp_path: Path) -> None:
    imports = house.read_imports(small_package)
    assert house.count_by_room(imports) == {
        ("cli", "text", house.TOP): 1,
        ("runtime", "text", house.LATE): 1,
        ("text", "runtime", house.TOP): 1,
    }
    (wrong,) = house.against_the_flow(imports)
    assert str(wrong) == "small.runtime.stage:4 imports small.text.words (late)"
    assert house.cycles(imports) == [["small.runtime.stage", "small.text.rules", "small.text.words"]]
    assert "cycles: 1" in house.describe(imports)
    house.draw(imports, tmp_path / "house.svg")
    assert "runtime" in (tmp_path / "house.svg").read_text()
