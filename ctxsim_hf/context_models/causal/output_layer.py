"""States before the output layer of a causal language model -> its logits, exactly as its own forward makes them.

Some models do more than multiply: Gemma 2 caps its logits, Granite and Cohere scale them. So the model's own forward
runs, with a body that returns the states it is given.
"""

import copy
from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedModel
from transformers.utils import ModelOutput


class OutputLayer:
    """
    Args:
        model (`PreTrainedModel`): A causal language model; its weights are shared, not copied.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self._model = copy.copy(model)
        self._model._modules = model._modules | {model.base_model_prefix: _GivenStates()}

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        """Return logits in float32, (states, vocabulary)."""
        logits: torch.Tensor = self._model(inputs_embeds=states[None]).logits
        return logits[0].float()


class _GivenStates(torch.nn.Module):
    def forward(self, *ignored: Any, inputs_embeds: torch.Tensor, **more: Any) -> "_Output":
        return _Output(last_hidden_state=inputs_embeds)

    @property
    def decoder(self) -> "_GivenStates":
        """The part that OPT and BART ask."""
        return self


@dataclass
class _Output(ModelOutput):
    last_hidden_state: torch.Tensor | None = None

    def __getattr__(self, name: str) -> None:
        """Return None for all else that a model hands on from its body, such as caches and the routes of experts."""
        if name.startswith("__"):
            raise AttributeError(name)
