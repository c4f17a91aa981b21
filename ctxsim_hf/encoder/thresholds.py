"""What a score means where nobody has labelled anything: how it compares with those of random sentences and of
adjacent ones of the same text. Kept in a model's folder as thresholds.json."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import write_json

THRESHOLDS_FILE = "thresholds.json"
_PERCENT = np.arange(101)


@dataclass(frozen=True)
class Thresholds:
    """Percentiles 0 to 100 of the scores of random pairs and of adjacent ones, and how many pairs of each."""

    random: np.ndarray  # (101,)
    adjacent: np.ndarray  # (101,)
    pairs: int
    settings: dict[str, Any] | None = None  # of the origin that scored them: with others, scores are others

    @classmethod
    def from_scores(
        cls, random: np.ndarray, adjacent: np.ndarray, settings: dict[str, Any] | None = None
    ) -> "Thresholds":
        return cls(np.percentile(random, _PERCENT), np.percentile(adjacent, _PERCENT), len(random), settings)

    def shares(self, score: float) -> tuple[float, float]:
        """The shares of random and of adjacent pairs that score below, from 0 to 1."""
        random, adjacent = (_share(percentiles, score) for percentiles in (self.random, self.adjacent))
        return random, adjacent

    def describe(self, score: float) -> str:
        random, adjacent = (f"{100 * share:.0f} %" for share in self.shares(score))
        return f"above {random} of random pairs of sentences and {adjacent} of adjacent ones"

    def save(self, folder: str | Path) -> None:
        about = {"random": self.random.tolist(), "adjacent": self.adjacent.tolist(), "pairs": self.pairs}
        write_json(Path(folder) / THRESHOLDS_FILE, about | ({"settings": self.settings} if self.settings else {}))

    @classmethod
    def load(cls, folder: str | Path) -> "Thresholds | None":
        """Those of a model; None if nobody has saved any."""
        path = Path(folder) / THRESHOLDS_FILE
        if not path.exists():
            return None
        try:
            about = json.loads(path.read_text("utf-8"))
            random, adjacent = (np.array(about[key], dtype=np.float64) for key in ("random", "adjacent"))
            if random.shape != _PERCENT.shape or adjacent.shape != _PERCENT.shape:
                raise ValueError(f"expected 101 percentiles of each, got {random.shape} and {adjacent.shape}")
            return cls(random, adjacent, int(about["pairs"]), about.get("settings"))
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{str(path)!r} is damaged: {error}; ctxsim evaluate --save-thresholds mends it"
            ) from error


def _share(percentiles: np.ndarray, score: float) -> float:
    """Between two percentiles on a straight line; of a run of equal ones (such as zeros), the lowest: what is equal is
    not below."""
    places = np.flatnonzero(percentiles < score)
    if not places.size:
        return 0.0
    last = int(places[-1])
    if last == 100:
        return 1.0
    low, high = percentiles[last], percentiles[last + 1]
    return float(last + (score - low) / (high - low)) / 100
