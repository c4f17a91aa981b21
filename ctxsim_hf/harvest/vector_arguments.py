"""Define the arguments of `ctxsim harvest-vectors`."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from annotated_types import Ge, Le
from transformers.hf_argparser import HfArg

from ctxsim_hf.origin.settings import OriginSettings
from ctxsim_hf.origin.settings_arguments import OverrideArguments
from ctxsim_hf.origin.similarity import origin_folder
from ctxsim_hf.runtime.arguments import StageArguments
from ctxsim_hf.runtime.record import describe_stage
from ctxsim_hf.runtime.validation import Count, Seed


@dataclass(kw_only=True)
class VectorArguments(StageArguments, OverrideArguments):
    """The arguments of `ctxsim harvest-vectors`."""

    origin: str = HfArg(help="Folder made by ctxsim index, or its id on the Hub; its sentences are drawn.")
    sentences: Count = HfArg(
        default=20_000, help="Number of sentences to train on, or all if there are fewer; 10 %% more for validation."
    )
    min_tokens: Count = HfArg(default=5, help="Leave out shorter sentences, which are mostly fragments.")
    max_tokens: Count = HfArg(default=40, help="Leave out longer sentences.")
    passages: Annotated[float, Ge(0), Le(1)] = HfArg(
        default=0.0,
        help="Share of the sentences in whose place stands their whole chunk, for a surrogate that is to search "
        "documents.",
    )
    seed: Seed = HfArg(default=0, help="Seed of the drawing.")
    sentences_per_file: Count = HfArg(default=500, help="Sentences in a file; a killed process loses one file.")
    workers: Count = HfArg(default=1, help="Processes, each with the models in memory.")
    array: bool = HfArg(
        default=False,
        help="Make this task's share of a Slurm job array; the last task to finish completes the folder.",
    )

    unrecorded: ClassVar[tuple[str, ...]] = (*StageArguments.unrecorded, "origin", "cache", "workers", "array")

    def overrides(self) -> dict[str, Any]:
        """Return the settings to change. What a sentence has with everything is no dot product, so it stays."""
        return super().overrides() | {"cloze_neighbours": 0}

    def inputs(self) -> dict[str, Any]:
        """Describe what is read, for stage.json."""
        folder = origin_folder(self.origin)
        settings = OriginSettings.load(folder).override(**self.overrides())
        return {"origin": describe_stage(folder, "index"), "settings": settings.to_json()}
