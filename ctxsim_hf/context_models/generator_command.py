"""Chunks -> a generator: the probability of a sentence given its context, and of a context given its sentence (Eq. 2).

    accelerate launch -m ctxsim_hf.train.generator --chunks chunks --tokenizer tokenizer --direction sentence \
        --output generator-sentence

There are two kinds: `seq2seq`, that of the paper, with one model for each direction or one for `all`; and `light`,
which covers all three directions and trains in minutes on one machine.
"""

from typing import Any

from ctxsim_hf.context_models.context_data import ContextData
from ctxsim_hf.context_models.generator_arguments import GeneratorArguments
from ctxsim_hf.context_models.light.closed_form import fit_closed_form
from ctxsim_hf.context_models.light.training import LightGeneratorTask
from ctxsim_hf.context_models.seq2seq.training import Seq2SeqGeneratorTask
from ctxsim_hf.train.loop import train
from ctxsim_hf.train.training_stage import run_training

COMMAND = "train generator"


def run(arguments: GeneratorArguments) -> dict[str, Any]:
    """Run the stage; returns the counts that stage.json records."""
    arguments.tokenizer = arguments.tokenizer or str(arguments.start)
    inputs = arguments.inputs()
    data = ContextData.open(arguments)

    if arguments.kind == "seq2seq":
        return run_training(COMMAND, arguments, inputs, data.tokenizer, lambda: Seq2SeqGeneratorTask(arguments, data))
    fit = fit_closed_form if arguments.closed_form else train
    return run_training(COMMAND, arguments, inputs, data.tokenizer, lambda: LightGeneratorTask(arguments, data), fit)
