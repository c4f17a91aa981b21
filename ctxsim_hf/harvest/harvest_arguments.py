"""Define the arguments of `ctxsim harvest`."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import torch
from annotated_types import Ge, Le
from transformers.hf_argparser import HfArg

from ctxsim_hf.harvest.drawing import Mix
from ctxsim_hf.harvest.plan import MIN_PAIRS
from ctxsim_hf.origin.settings import OriginSettings
from ctxsim_hf.origin.settings_arguments import OverrideArguments
from ctxsim_hf.origin.signals import CONTEXTS
from ctxsim_hf.origin.similarity import OriginSimilarity, origin_folder
from ctxsim_hf.runtime.arguments import StageArguments
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.record import describe_stage
from ctxsim_hf.runtime.validation import Count, CountOrZero, OneOf, Seed
from ctxsim_hf.text.chunks import describe_chunks

# In pair mode every sentence needs a context set of its own, so groups are small and few of their pairs are random; in
# group mode another pair costs next to nothing.
MIXES = {
    "pair": {"near": 10, "document": 6, "unrelated": 2, "random_share": 0.3},
    "group": {"near": 40, "document": 16, "unrelated": 8, "random_share": 1.0},
}


@dataclass(kw_only=True)
class HarvestArguments(StageArguments, OverrideArguments):
    """The arguments of `ctxsim harvest`."""

    origin: str = HfArg(help="Folder made by ctxsim index, or its id on the Hub; its sentences are paired.")
    chunks: str | None = HfArg(default=None, help="Check that the index was made from this folder of chunks.")
    pairs: Annotated[int, Ge(MIN_PAIRS)] = HfArg(
        help="Number of pairs, split into 98 %% train, 1 %% validation and 1 %% test."
    )
    at_most: bool = HfArg(default=False, help="Accept fewer pairs if there are too few sentences.")
    mode: Annotated[str, OneOf(MIXES)] = HfArg(
        default="pair",
        help="pair: contexts of the two sentences, as in the paper. group: one pool of contexts for many sentences.",
    )
    near: Count | None = HfArg(default=None, help="Sentences of a group that are near each other by TF-IDF.")
    document: Count | None = HfArg(default=None, help="Sentences of a group that follow each other in one document.")
    unrelated: CountOrZero | None = HfArg(
        default=None, aliases=["--strangers"], help="Sentences of a group that come from anywhere."
    )
    random_share: Annotated[float, Ge(0), Le(1)] | None = HfArg(
        default=None, help="Largest share of random pairs; 1 keeps every pair of a group."
    )
    farthest: Count = HfArg(default=256, help="Rank of the farthest sentence that still counts as near.")
    min_tokens: Count = HfArg(default=5, help="Leave out shorter sentences, which are mostly fragments.")
    max_tokens: Count = HfArg(default=40, help="Leave out longer sentences.")
    seed: Seed = HfArg(default=0, help="Seed of the drawing.")
    pairs_per_file: Count = HfArg(default=5000, help="About how many pairs a file holds; a killed process loses one.")
    shard: CountOrZero | None = HfArg(default=None, help="Make only this share of the files, from 0; for schedulers.")
    num_shards: Count = HfArg(default=1, help="Number of shares.")
    array: bool = HfArg(default=False, help="Take --shard and --num-shards from the Slurm job array of this task.")

    unrecorded: ClassVar[tuple[str, ...]] = (
        *StageArguments.unrecorded,
        "origin",
        "chunks",
        "cache",
        "shard",
        "num_shards",
        "array",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in MIXES[self.mode].items():
            if getattr(self, name) is None:
                setattr(self, name, value)
        if (self.shard or 0) >= self.num_shards:
            raise UserError(f"--shard must be from 0 to --num-shards - 1, got {self.shard} of {self.num_shards}")
        if self.num_shards > 1 and self.shard is None:
            raise UserError(f"--num-shards {self.num_shards} needs --shard, from 0 to {self.num_shards - 1}")

    @property
    def mix(self) -> Mix:
        """What a group is made of."""
        return Mix(self.near, self.document, self.unrelated, self.farthest, self.random_share)  # type: ignore[arg-type]

    @property
    def shards_folder(self) -> Path:
        """The folder that holds the shares until all of them are finished."""
        return Path(f"{self.output}.ctxsim-shards")

    def of_shard(self, shard: int) -> "HarvestArguments":
        """Return these arguments for one share, which has a folder of its own."""
        return replace(self, shard=shard, output=str(self.shards_folder / f"{shard}-of-{self.num_shards}"))

    def refuse_to_replace_in_shards(self) -> None:
        """Refuse --overwrite for one shard of several."""
        if self.num_shards > 1 and self.overwrite:
            raise UserError(
                f"{self.output!r} exists, and a shard cannot tell whether it is the old one or what the other shards "
                "made; remove it, or run without --overwrite or without --shard"
            )

    def inputs(self) -> dict[str, Any]:
        """Describe what is read, for stage.json; refuse chunks that the origin was not made from."""
        found = describe_stage(origin_folder(self.origin), "index")
        if self.chunks is not None:
            indexed, given = found["inputs"]["chunks"], describe_chunks(self.chunks)
            if indexed["xxh3_128"] != given["xxh3_128"]:
                raise UserError(
                    f"{self.origin!r} was made from chunks with the digest {indexed['xxh3_128']}, but {self.chunks!r} "
                    f"has {given['xxh3_128']}; index these chunks with ctxsim index, or leave out --chunks"
                )
        settings = OriginSettings.load(origin_folder(self.origin)).override(**self.overrides())
        return {"origin": found, "settings": settings.to_json()}

    def open_on(self, device: torch.device) -> OriginSimilarity:
        """Open the origin on a device, without remembering context sets: no sentence occurs in two groups."""
        origin = self.open_origin(self.origin, str(device))
        if CONTEXTS in origin.signals:
            origin.contexts.sets.max_remembered = 1
        return origin
