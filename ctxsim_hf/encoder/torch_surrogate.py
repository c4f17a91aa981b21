"""A surrogate run by torch, as an encoder asks for it."""

from pathlib import Path

import numpy as np
import torch
from transformers import TokenizersBackend

from ctxsim_hf.encoder.modeling_surrogate import SurrogateModel
from ctxsim_hf.encoder.surrogate_folder import SurrogateFolder

# On a CPU small batches stay in its caches and hold little padding; 1,024 was the fastest from 2 x 64 to 12 x 768.
# Elsewhere a batch must be large to keep the device busy.
TOKENS_PER_BATCH = {"cpu": 1024}
TOKENS_PER_BATCH_ELSEWHERE = 16_384


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


def open_torch(
    path: Path, device: str | None, num_threads: int | None = None
) -> tuple[TorchSurrogate, TokenizersBackend, int]:
    """The model, its tokenizer, and how many tokens a sentence may have. None takes a GPU if there is one, and leaves
    the number of threads as it is."""
    folder = SurrogateFolder.open(path)
    if num_threads is not None:
        torch.set_num_threads(num_threads)
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    return TorchSurrogate(folder.load_model().to(device)), folder.tokenizer, folder.max_tokens
