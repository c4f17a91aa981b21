"""A table of token vectors as an encoder, so that a surrogate can be the mean of its tokens.

Its folder is that of a StaticEmbedding of sentence-transformers: model.safetensors with the table, tokenizer.json,
and modules.json. Folders of model2vec, which have other names for the table, can be read as well.
"""

import os
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput

from ctxsim_hf.encoder.find_surrogate import is_static_modules
from ctxsim_hf.encoder.hub_files import optional_file
from ctxsim_hf.encoder.static_surrogate import read_table
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import read_json


class StaticConfig(PreTrainedConfig):
    """Configuration of a [`StaticEncoder`]."""

    model_type = "ctxsim_static"

    def __init__(
        self, vocab_size: int = 1, hidden_size: int = 1, initializer_range: float = 0.02, **kwargs: Any
    ) -> None:
        self.vocab_size, self.hidden_size, self.initializer_range = vocab_size, hidden_size, initializer_range
        kwargs.setdefault("pad_token_id", 0)
        super().__init__(**kwargs)


class StaticEncoder(PreTrainedModel):
    """An encoder whose last hidden state is the vector of each token, whatever stands around it."""

    config_class = StaticConfig
    base_model_prefix = "static"
    supports_gradient_checkpointing = True

    def __init__(self, config: StaticConfig) -> None:
        super().__init__(config)
        self.embedding = nn.Embedding(config.vocab_size, config.hidden_size)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.embedding

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None, **kwargs: Any
    ) -> BaseModelOutput:
        """Look up the vectors of tokens."""
        return BaseModelOutput(last_hidden_state=self.embedding(input_ids))


def read_static_table(name: str | os.PathLike[str], **hub: Any) -> torch.Tensor | None:
    """Return the table in a folder or a repository of the Hub, a row for each token id, or None if that is not a
    static model."""
    modules = optional_file(name, "modules.json", hub)
    if modules is None or not is_static_modules(read_json(modules)):
        return None
    weights = optional_file(name, "model.safetensors", hub)
    if weights is None:
        raise UserError(f"expected a static model with its vectors in {str(name)!r}, but it has no model.safetensors")
    return torch.from_numpy(read_table(weights))
