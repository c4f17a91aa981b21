"""Locate what is in a folder made by `ctxsim adapt`, and give the arguments of stages that build on it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.presets import PRESETS
from ctxsim_hf.runtime.record import describe_stage

# Mostly pairs of sentences that share words, where contexts and words disagree most.
MIX = {"near": 48, "farthest": 64, "document": 8, "random_share": 0.3}
SIGNALS = ["contexts=1", "words=1"]  # label the pairs: their errors differ, so the mean of both is better
MADE_BY = {
    "chunks": "chunk",
    "tokenizer": "train-tokenizer",
    "generator": "train generator",
    "pairs": "harvest",
}


@dataclass(frozen=True)
class AdaptedFolder:
    """A folder made by `ctxsim adapt`."""

    path: str
    preset: str

    @classmethod
    def find(cls, path: str) -> "AdaptedFolder":
        """Open an existing folder; refuse one that `ctxsim adapt` did not make or did not finish."""
        if not any(Path(path).glob("chunks*")):
            raise UserError(f"expected a folder made by `ctxsim adapt`, but {path!r} has no chunks")
        origins = [f"origin-{preset}" for preset in PRESETS if Path(path, f"ctxsim/origin-{preset}").exists()]
        if len(origins) > 1:
            raise UserError(f"expected one origin in {path + '/ctxsim'!r}, found {', '.join(origins)}")
        if not origins:
            raise UserError(
                f"{path!r} is not finished: it has no ctxsim/origin-*; run the same `ctxsim adapt` again to finish it"
            )
        return cls(path, origins[0].removeprefix("origin-"))

    def describe(self) -> dict[str, Any]:
        """Describe the folder for the stage.json of a stage that reads it; refuse an unfinished one."""
        found = {name: describe_stage(self.place(name), command) for name, command in MADE_BY.items()}
        return found | {"origin": describe_stage(self.origin, "index")}

    def place(self, name: str) -> str:
        """Return the path of something in the folder."""
        return str(Path(self.path) / name)

    @property
    def origin(self) -> str:
        """The path of the origin."""
        return self.place(f"ctxsim/origin-{self.preset}")

    @property
    def surrogate(self) -> str:
        """The path of the surrogate."""
        return self.place(f"ctxsim/surrogate-{self.preset}")

    def harvest_values(self, pairs: int) -> dict[str, Any]:
        """Return the arguments of a harvest of so many pairs, except its output."""
        # A small corpus may have too few sentences for so many pairs; then fewer are harvested.
        values = {"origin": self.origin, "pairs": pairs, "at_most": True, "mode": "group"}
        return values | MIX | {"signals": SIGNALS}

    def surrogate_values(self, pairs: str, objective: str = "pairs") -> dict[str, Any]:
        """Return the arguments of training a surrogate on pairs, except its output and its limits."""
        starts_from_vectors = "light_generator" in PRESETS[self.preset]
        return {
            "objective": objective,
            "pairs": pairs,
            "tokenizer": self.place("tokenizer"),
            "preset": self.preset,
            "token_embeddings": self.place("generator") if starts_from_vectors else None,
            # Trained by Pearson, it ended with a lower L2 than when trained by L2: see docs/experiments.md.
            "loss": "pearson" if objective == "pairs" else None,
        }
