"""A surrogate run by torch, as an encoder asks for it."""

from typing import Protocol

import numpy as np
import torch

from ctxsim_hf.models.modeling_surrogate import SurrogateModel

# On a CPU small batches stay in its caches and hold little padding; 1,024 was the fastest from 2 x 64 to 12 x 768.
# Elsewhere a batch must be large to keep the device busy.
TOKENS_PER_BATCH = {"cpu": 1024}
TOKENS_PER_BATCH_ELSEWHERE = 16_384


class VectorModel(Protocol):
    """What an encoder asks of a model, whatever runs it."""

    vector_size: int
    tokens_per_batch: int  # that suit it, padding included

    def __call__(self, input_ids: np.ndarray, attention_mask: np.ndarray) -> np.ndarray:
        """Twice (sentences, tokens) int64 -> (sentences, vector_size) float32."""
        ...


class TorchSurrogate:
    """A [`SurrogateModel`] as a `VectorModel`. Puts the model in evaluation mode and leaves it where it is."""

    def __init__(self, model: SurrogateModel) -> None:
        self.model = model.eval()
        self.vector_size: int = model.config.hidden_size
        self.tokens_per_batch = TOKENS_PER_BATCH.get(model.device.type, TOKENS_PER_BATCH_ELSEWHERE)

    @torch.inference_mode()
    def __call__(self, input_ids: np.ndarray, attention_mask: np.ndarray) -> np.ndarray:
        ids, mask = (torch.from_numpy(array).to(self.model.device) for array in (input_ids, attention_mask))
        vectors: np.ndarray = self.model(ids, attention_mask=mask).sentence_embedding.float().cpu().numpy()
        return vectors
