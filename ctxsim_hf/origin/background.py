"""The background of an origin: sentences of its corpus that scores are compared with, kept when it is indexed."""

import json
from pathlib import Path

BACKGROUND_FILE = "background.json"
CLOZE_BACKGROUND = "background.npy"  # what the background suggests to a language model


def read_background(folder: Path) -> list[str]:
    """Read the background sentences of an origin."""
    background: list[str] = json.loads((folder / BACKGROUND_FILE).read_text("utf-8"))
    return background
