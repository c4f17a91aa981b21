"""Locate what is in a folder made by `ctxsim adapt`, and give the arguments of stages that build on it."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ctxsim_hf.origin.settings import OriginSettings
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import read_sealed
from ctxsim_hf.runtime.presets import PRESETS
from ctxsim_hf.runtime.record import describe_stage

# Mostly pairs of sentences that share words, where contexts and words disagree most.
MIX = {"near": 48, "farthest": 64, "document": 8, "unrelated": 8, "random_share": 0.3}
ASKED_FILE = "adapt.json"
MADE_BY = {
    "chunks": "chunk",
    "tokenizer": "train-tokenizer",
    "generator": "train generator",
    "pairs": "harvest",
}


@dataclass(frozen=True)
class AdaptedFolder:
    """A folder made by `ctxsim adapt`.

    Args:
        path (`str`): The folder.
        preset (`str`): Sizes of its models.
        context_model (`str`, *optional*): Language model to label pairs by. None labels them by a generator.
        start (`str`, *optional*): Encoder that the surrogate starts from. None starts from vectors of words.
    """

    path: str
    preset: str
    context_model: str | None = None
    start: str | None = None

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
        found = cls(path, origins[0].removeprefix("origin-"))
        asked = found.asked()
        return replace(found, context_model=asked.get("context_model"), start=asked.get("start"))

    @property
    def asked_file(self) -> Path:
        """The file that says what was asked for."""
        return Path(self.place(ASKED_FILE))

    def asked(self) -> dict[str, Any]:
        """Return what was asked for, or an empty dictionary if nothing was made yet."""
        return read_sealed(self.asked_file, "remove it and run the same command again")

    def expect_generator(self) -> None:
        """Refuse a folder that was not made from a generator of its own alone."""
        for flag, given in {"--context-model": self.context_model, "--start": self.start}.items():
            if given is not None:
                raise UserError(
                    f"expected a folder made by `ctxsim adapt` with a generator of its own, but {self.path!r} was "
                    f"made with {flag} {given}"
                )

    def expect_language_model(self) -> None:
        """Refuse a folder that was made without a language model."""
        if self.context_model is None:
            raise UserError(
                f"expected a folder made by `ctxsim adapt --context-model`, but {self.path!r} was made without a "
                "language model, so there are no bridges"
            )

    def describe(self) -> dict[str, Any]:
        """Describe the folder for the stage.json of a stage that reads it; refuse an unfinished one."""
        found = {
            name: describe_stage(self.place(name), command)
            for name, command in MADE_BY.items()
            if name not in self.left_out
        }
        return found | {"origin": describe_stage(self.origin, "index")}

    @property
    def left_out(self) -> set[str]:
        """Names of what is not made: a language model needs no generator, and with an encoder too no tokenizer."""
        models = {"generator": self.context_model, "tokenizer": self.context_model and self.start}
        return {name for name, model in models.items() if model is not None}

    @property
    def signals(self) -> dict[str, float]:
        """The signals that have a weight in the origin, with their weights."""
        return OriginSettings.load(Path(self.origin)).active_signals

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
        return {"origin": self.origin, "pairs": pairs, "at_most": True, "mode": "group"} | MIX

    def teacher_values(self, vectors: str) -> dict[str, Any]:
        """Return the arguments of training a surrogate on the origin's vectors, except its output and its limits."""
        start = self._start_values()
        # Without a pretrained encoder, layers have nothing to add to a mean of words within an hour.
        kind = {} if self.start is not None else {"kind": "static"}
        return {"objective": "teacher", "vectors": vectors, **start, **kind}

    def surrogate_values(self, pairs: str, objective: str = "pairs") -> dict[str, Any]:
        """Return the arguments of training a surrogate on pairs, except its output and its limits."""
        return {
            "objective": objective,
            "pairs": pairs,
            **self._start_values(),
            "preset": None if self.start is not None else self.preset,
            # Trained by Pearson, it ended with a lower L2 than when trained by L2: see docs/experiments.md.
            "loss": "pearson" if objective == "pairs" else None,
        }

    def _start_values(self) -> dict[str, Any]:
        """Return what a surrogate starts from: an encoder with its own tokenizer, or vectors of words."""
        if self.start is not None:
            return {"init": self.start}
        vectors = self.context_model
        if vectors is None and "light_generator" in PRESETS[self.preset]:
            vectors = self.place("generator")
        return {"tokenizer": self.place("tokenizer"), "token_embeddings": vectors}
