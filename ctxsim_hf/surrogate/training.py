"""Turn labelled pairs into a surrogate, the fast encoder that approximates Origin's scores (paper, section 3.4).

    accelerate launch -m ctxsim_hf.train.surrogate --pairs pairs --tokenizer tokenizer --output surrogate

| objective | trains on |
|---|---|
| pairs | `--pairs`: the scores of a harvest |
| teacher | `--vectors`: an origin's vectors of sentences, whose dot products are its scores |
| cross | `--pairs`, reading both sentences of a pair at once |
| sts, nli, triplet | human labels in public datasets, usually with a surrogate as `--init`: see public_data.py |
| afs | the same, by ten-fold cross-validation: see cross_validation.py |
"""

from typing import Any

from ctxsim_hf.surrogate.above_start import MeasuredTask, train_above_start
from ctxsim_hf.surrogate.cross_task import CrossTask
from ctxsim_hf.surrogate.cross_validation import cross_validate
from ctxsim_hf.surrogate.siamese_task import SiameseTask
from ctxsim_hf.surrogate.surrogate_start import read_tokenizer
from ctxsim_hf.surrogate.training_arguments import SurrogateArguments
from ctxsim_hf.train.training_stage import run_training

COMMAND = "train surrogate"


def run(arguments: SurrogateArguments) -> dict[str, Any]:
    """Run the stage; return the counts that stage.json records."""
    arguments.settle_start()
    inputs = arguments.inputs()
    source = arguments.source()
    inputs["data"] = source.describe()
    if arguments.objective == "afs" and arguments.fold is None:
        return cross_validate(COMMAND, arguments, inputs, run)
    tokenizer = read_tokenizer(str(arguments.tokenizer))
    data = source.open(tokenizer, inputs["tokenizer"]["xxh3_128"])

    def make_task() -> MeasuredTask:
        return (CrossTask if arguments.objective == "cross" else SiameseTask)(arguments, tokenizer, data)

    return run_training(COMMAND, arguments, inputs, tokenizer, make_task, train_above_start)
