"""Read scores made by another program, in lines of `sentence TAB sentence TAB score`, as a system."""

import math
from collections.abc import Sequence

import numpy as np

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.lines import open_lines


class ScoresFile:
    """A file of scores as a system.

    Args:
        path (`str`): A file such as `ctxsim similarity --output` writes; further columns are ignored.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.scores: dict[tuple[str, str], float] = {}
        for number, line in enumerate(open_lines(path), 1):
            try:
                first, second, score = line.split("\t")[:3]
                self.scores[first, second] = float(score)
                if not math.isfinite(self.scores[first, second]):
                    raise ValueError(score)
            except ValueError as error:
                raise UserError(
                    f"{path!r}, line {number}: expected sentence TAB sentence TAB score, got {line[:60]!r}"
                ) from error

    def similarity(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> np.ndarray:
        """Return the score of each pair, in either order."""
        pairs = list(zip(sentences1, sentences2, strict=True))
        found = [self.scores.get((one, other), self.scores.get((other, one))) for one, other in pairs]
        missing = [pair for pair, score in zip(pairs, found, strict=True) if score is None]
        if missing:
            raise UserError(
                f"{self.path!r} has no score for {len(missing)} of {len(pairs)} pairs, such as {missing[0]}"
            )
        return np.array(found, dtype=np.float64)
