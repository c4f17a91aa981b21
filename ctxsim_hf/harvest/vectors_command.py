"""Turn the sentences of an origin into vectors for a surrogate to learn from: the stage `ctxsim harvest-vectors`.

An origin's similarity is a weighted mean of signals. Where every signal is a dot product of vectors, such as `cloze`,
`words` and `encoder`, so is the mean. The vector of a sentence then says how similar it is to all others, so that a
surrogate learns from one sentence what takes many pairs. Several trainings can read one folder.
"""

from typing import Any

from ctxsim_hf.harvest.vector_arguments import VectorArguments
from ctxsim_hf.harvest.vector_blocks import VectorBlocks
from ctxsim_hf.runtime.array_job import array_rank, run_as_rank
from ctxsim_hf.runtime.blocks import Executor, LocalExecutor, execute
from ctxsim_hf.runtime.record import read_counts
from ctxsim_hf.runtime.stage import Stage

COMMAND = "harvest-vectors"
PACKAGES = ("numpy", "pyarrow", "scipy", "tokenizers", "torch", "transformers")


def run(arguments: VectorArguments, executor: Executor | None = None) -> dict[str, Any] | str:
    """Run the stage; return the counts that stage.json records, or a line that says what other tasks have to do.

    Args:
        arguments (`VectorArguments`): Which sentences to draw, and the settings of their origin.
        executor (`Executor`, *optional*): Makes the files. None uses `arguments.workers` processes on this machine.
    """
    stage = Stage(COMMAND, arguments, arguments.inputs(), PACKAGES, wait=arguments.array)
    if arguments.array:
        return run_as_rank(stage, lambda folder: VectorBlocks(folder, arguments), array_rank())
    with stage:
        if not stage.finished:
            work = VectorBlocks(stage.folder, arguments)
            stage.finish(execute(work, executor or LocalExecutor(arguments.workers, "vectors")))
    return read_counts(arguments.output, COMMAND)
