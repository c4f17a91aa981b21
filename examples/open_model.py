"""Save a tiny model and open it by AutoModel, as a check of an installation: run by `make wheel`."""

import tempfile

from transformers import AutoModel, RobertaConfig

import ctxsim_hf

config = RobertaConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, vocab_size=60)
with tempfile.TemporaryDirectory() as folder:
    ctxsim_hf.SurrogateModel(config).save_pretrained(folder)
    opened = AutoModel.from_pretrained(folder)
print(f"{type(opened).__name__} of ctxsim-hf {ctxsim_hf.__version__} in {ctxsim_hf.__file__}")
