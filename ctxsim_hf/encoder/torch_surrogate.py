"""The folder of a surrogate -> a model that runs with torch."""

from pathlib import Path

import numpy as np
import torch
from transformers import TokenizersBackend

from ctxsim_hf.encoder.modeling_surrogate import SurrogateModel
from ctxsim_hf.encoder.surrogate_folder import SurrogateFolder

# On a CPU, small batches fit its caches and have little padding; 1,024 was the fastest for models from 2 layers of
# size 64 to 12 of size 768. On other devices, batches must be large to keep them busy.
TOKENS_PER_BATCH = {"cpu": 1024}
TOKENS_PER_BATCH_ELSEWHERE = 16_384


class TorchSurrogate:
    """A [`SurrogateModel`] as a `VectorModel`. It puts the model in evaluation mode and leaves it on its device."""

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
    """Open the model and its tokenizer, and return them with the maximum number of tokens of a sentence.

    Args:
        path (`Path`): Folder of the surrogate.
        device (`str`, *optional*): Device of torch. None takes a GPU if there is one.
        num_threads (`int`, *optional*): Number of threads. None keeps the default.
    """
    folder = SurrogateFolder.open(path)
    if num_threads is not None:
        torch.set_num_threads(num_threads)
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    return TorchSurrogate(folder.load_model().to(device)), folder.tokenizer, folder.max_tokens
