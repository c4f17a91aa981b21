"""Turn the sentences of an origin into vectors for a surrogate to learn from: the stage `ctxsim harvest-vectors`.

An origin's similarity is a weighted mean of signals. Where every signal is a dot product of vectors, such as `cloze`,
`words` and `encoder`, so is the mean. The vector of a sentence then says how similar it is to all others, so that a
surrogate learns from one sentence what takes many pairs. Several trainings can read one folder.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from annotated_types import Ge, Le
from transformers.hf_argparser import HfArg

from ctxsim_hf.harvest.vector_blocks import VectorBlocks, check_vectors, draw_sentences
from ctxsim_hf.origin.settings import OriginSettings
from ctxsim_hf.origin.settings_arguments import OverrideArguments
from ctxsim_hf.origin.similarity import origin_folder
from ctxsim_hf.runtime.arguments import StageArguments
from ctxsim_hf.runtime.blocks import Executor, LocalExecutor, execute
from ctxsim_hf.runtime.parallel import available_cores
from ctxsim_hf.runtime.record import describe_stage, read_counts
from ctxsim_hf.runtime.stage import Stage
from ctxsim_hf.runtime.validation import Count, Seed

COMMAND = "harvest-vectors"
PACKAGES = ("numpy", "pyarrow", "scipy", "tokenizers", "torch", "transformers")


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

    unrecorded: ClassVar[tuple[str, ...]] = (*StageArguments.unrecorded, "origin", "cache", "workers")

    def overrides(self) -> dict[str, Any]:
        """Return the settings to change. What a sentence has with everything is no dot product, so it stays."""
        return super().overrides() | {"cloze_neighbours": 0}

    def inputs(self) -> dict[str, Any]:
        """Describe what is read, for stage.json."""
        folder = origin_folder(self.origin)
        settings = OriginSettings.load(folder).override(**self.overrides())
        return {"origin": describe_stage(folder, "index"), "settings": settings.to_json()}


def run(arguments: VectorArguments, executor: Executor | None = None) -> dict[str, Any]:
    """Run the stage; return the counts that stage.json records.

    Args:
        arguments (`VectorArguments`): Which sentences to draw, and the settings of their origin.
        executor (`Executor`, *optional*): Makes the files. None uses `arguments.workers` processes on this machine.
    """
    with Stage(COMMAND, arguments, arguments.inputs(), PACKAGES) as stage:
        if not stage.finished:
            threads = None if arguments.workers == 1 else max(1, available_cores() // arguments.workers)
            work = VectorBlocks(
                stage.folder,
                arguments.origin,
                arguments,
                arguments.sentences_per_file,
                arguments.passages,
                threads,
            )
            check_vectors(work.origin)
            tokens = (arguments.min_tokens, arguments.max_tokens)
            work.sentences = draw_sentences(work.origin.index, arguments.sentences, tokens, arguments.seed)
            stage.finish(execute(work, executor or LocalExecutor(arguments.workers, "vectors")))
    return read_counts(arguments.output, COMMAND)
