"""What `ctxsim adapt` leaves in its folder, by name: run this there."""

import evaluate
from datasets import load_dataset
from transformers import AutoModel

import ctxsim_hf  # noqa: F401 (AutoModel knows our models from here on)

print(type(AutoModel.from_pretrained("ctxsim/surrogate-light")).__name__)
print(load_dataset("ctxsim/harvested-pairs"))
print(evaluate.load("ctxsim/origin").compute(predictions=["Copy a file."], references=["Make a copy."], origin="ctxsim/origin-light"))
