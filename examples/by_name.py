"""What `make demo` leaves in its folder, opened by name: run this there."""

import evaluate
from datasets import load_dataset
from transformers import AutoModel

import ctxsim_hf  # noqa: F401, for AutoModel to know our models

model = AutoModel.from_pretrained("ctxsim/surrogate-light")
pairs = load_dataset("ctxsim/harvested-pairs", split="train")
origin = evaluate.load("ctxsim/origin")
found = origin.compute(predictions=["Copy a file."], references=["Make a copy."], origin="ctxsim/origin-light")
print(f"AutoModel: {type(model).__name__}")
print(f"load_dataset: {len(pairs):,} pairs, such as {max(pairs, key=lambda pair: pair['score'])}")
print(f"evaluate: the similarity of 'Copy a file.' and 'Make a copy.' is {found['mean']:.3f}")
