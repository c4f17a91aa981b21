"""Scores of unlabelled pairs -> what a score means: how it compares with those of random and of adjacent sentences.
Kept in the folder of a model as thresholds.json."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import read_sealed, seal, write_json

THRESHOLDS_FILE = "thresholds.json"
REMEDY = "write it again with ctxsim evaluate --save-thresholds"
_PERCENT = np.arange(101)


@dataclass(frozen=True)
class Thresholds:
    """Percentiles 0 to 100 of the scores of random pairs and of adjacent pairs, and the number of pairs of each."""

    random: np.ndarray  # (101,)
    adjacent: np.ndarray | None  # (101,); None if no adjacent pairs were scored
    pairs: int
    settings: dict[str, Any] | None = None  # of the origin that scored them; other settings give other scores

    @classmethod
    def from_scores(
        cls, random: np.ndarray, adjacent: np.ndarray | None, settings: dict[str, Any] | None = None
    ) -> "Thresholds":
        """Compute the percentiles of scores."""
        near = None if adjacent is None else np.percentile(adjacent, _PERCENT)
        return cls(np.percentile(random, _PERCENT), near, len(random), settings)

    def shares(self, score: float) -> tuple[float, float | None]:
        """Return the shares of random and of adjacent pairs that score lower, from 0 to 1; None if not known."""
        return _share(self.random, score), None if self.adjacent is None else _share(self.adjacent, score)

    def describe(self, score: float) -> str:
        """Return these shares as text."""
        random, adjacent = self.shares(score)
        near = "" if adjacent is None else f" and {_said(adjacent)} adjacent ones"
        return f"above {_said(random, self.pairs)} random pairs of sentences{near}"

    def save(self, folder: str | Path) -> None:
        """Write thresholds.json into a folder."""
        about: dict[str, Any] = {"random": self.random.tolist(), "pairs": self.pairs}
        if self.adjacent is not None:
            about["adjacent"] = self.adjacent.tolist()
        write_json(
            Path(folder) / THRESHOLDS_FILE, seal(about | ({"settings": self.settings} if self.settings else {}))
        )

    @classmethod
    def load(cls, folder: str | Path) -> "Thresholds | None":
        """Return the thresholds in a folder, or None if there are none."""
        path = Path(folder) / THRESHOLDS_FILE
        if not (about := read_sealed(path, REMEDY)):
            return None
        try:
            random = np.array(about["random"], dtype=np.float64)
            adjacent = np.array(about["adjacent"], dtype=np.float64) if "adjacent" in about else None
            for found in (random, adjacent):
                if found is not None and found.shape != _PERCENT.shape:
                    raise ValueError(f"expected 101 percentiles, got {found.shape}")
            return cls(random, adjacent, int(about["pairs"]), about.get("settings"))
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{str(path)!r} is damaged: {error}; {REMEDY}") from error


def _said(share: float, pairs: int | None = None) -> str:
    """Return a share as text. It is never rounded to all: that is said of a score above every one that is known."""
    if share < 1:
        return f"{min(99, round(100 * share))} % of"
    return "all" if pairs is None else f"all {pairs:,}"


def _share(percentiles: np.ndarray, score: float) -> float:
    """Return the share below a score, by linear interpolation between percentiles. Equal scores, such as many zeros,
    are not below."""
    places = np.flatnonzero(percentiles < score)
    if not places.size:
        return 0.0
    last = int(places[-1])
    if last == 100:
        return 1.0
    low, high = percentiles[last], percentiles[last + 1]
    return float(last + (score - low) / (high - low)) / 100
