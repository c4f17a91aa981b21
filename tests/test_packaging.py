"""What an installation holds: every package, and the templates of cards beside them."""

import configparser
from importlib.resources import files
from pathlib import Path

from ctxsim_hf.hub.cards import TEMPLATES

ROOT = Path(__file__).parents[1]


def test_every_package_is_installed() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    found = {".".join(path.relative_to(ROOT).parent.parts) for path in (ROOT / "ctxsim_hf").rglob("__init__.py")}
    assert set(config["options"]["packages"].split()) == found | {TEMPLATES}
    assert config["options"]["package_dir"].split() == [TEMPLATES, "=", "model_cards"]
    assert config["options.package_data"][TEMPLATES] == "*.md"


def test_templates_are_found_where_they_are_installed() -> None:
    installed = {path.name for path in files(TEMPLATES).iterdir() if path.name.endswith(".md")}
    assert installed == {path.name for path in (ROOT / "model_cards").glob("*.md")}
