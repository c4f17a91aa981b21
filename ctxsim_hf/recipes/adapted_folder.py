"""The folder that `ctxsim adapt` makes: where things are in it, and how what is made from it is asked for."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.presets import PRESETS
from ctxsim_hf.runtime.stage import describe_stage

# Most pairs are of sentences that share words: there contexts and words say different things.
MIX = {"near": 48, "farthest": 64, "document": 8, "random_share": 0.3}
SIGNALS = ["contexts=1", "words=1"]  # of the pairs' labels: they err differently, and together less
MADE_BY = {
    "chunks": "chunk",
    "tokenizer": "train-tokenizer",
    "generator": "train generator",
    "pairs": "harvest",
}


@dataclass(frozen=True)
class AdaptedFolder:
    """Know where things are in the folder that `ctxsim adapt` makes."""

    path: str
    preset: str

    @classmethod
    def find(cls, path: str) -> "AdaptedFolder":
        """Open a folder that is there; refuse one that `ctxsim adapt` did not make, or did not finish."""
        if not any(Path(path).glob("chunks*")):
            raise UserError(f"expected a folder made by `ctxsim adapt`, but {path!r} has no chunks")
        origins = [f"origin-{preset}" for preset in PRESETS if Path(path, f"ctxsim/origin-{preset}").exists()]
        if len(origins) > 1:
            raise UserError(f"expected one origin in {path + '/ctxsim'!r}, found {', '.join(origins)}")
        if not origins:
            raise UserError(f"{path!r} is not finished: it has no ctxsim/origin-*; run `ctxsim adapt` again, to go on")
        return cls(path, origins[0].removeprefix("origin-"))

    def describe(self) -> dict[str, Any]:
        """Return how a stage that reads the folder records it; refuse what is not finished."""
        found = {name: describe_stage(self.place(name), command) for name, command in MADE_BY.items()}
        return found | {"origin": describe_stage(self.origin, "index")}

    def place(self, name: str) -> str:
        return str(Path(self.path) / name)

    @property
    def origin(self) -> str:
        return self.place(f"ctxsim/origin-{self.preset}")

    @property
    def surrogate(self) -> str:
        return self.place(f"ctxsim/surrogate-{self.preset}")

    def harvest_values(self, pairs: int) -> dict[str, Any]:
        """Return the arguments of a harvest of so many pairs, but for its output."""
        # Few documents have few sentences to pair, and fewer pairs will do.
        values = {"origin": self.origin, "pairs": pairs, "at_most": True, "mode": "group"}
        return values | MIX | {"signals": SIGNALS}

    def surrogate_values(self, pairs: str, objective: str = "pairs") -> dict[str, Any]:
        """Return the arguments by which a surrogate is trained on pairs, but for its output and how long."""
        starts_from_vectors = "light_generator" in PRESETS[self.preset]
        return {
            "objective": objective,
            "pairs": pairs,
            "tokenizer": self.place("tokenizer"),
            "preset": self.preset,
            "token_embeddings": self.place("generator") if starts_from_vectors else None,
            # Asked for the proportions of the scores, it came nearer to these themselves than when asked for them.
            "loss": "pearson" if objective == "pairs" else None,
        }
