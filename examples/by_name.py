"""What `make demo` leaves in its folder, opened by name: run this there."""

import evaluate
from datasets import load_dataset
from transformers import AutoModel

import ctxsim_hf  # noqa: F401, for AutoModel to know our models

origin = evaluate.load("ctxsim/origin")
print(type(AutoModel.from_pretrained("ctxsim/surrogate-light")).__name__)
print(load_dataset("ctxsim/harvested-pairs"))
print(origin.compute(predictions=["Copy a file."], references=["Make a copy."], origin="ctxsim/origin-light"))
