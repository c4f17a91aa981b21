"""The folder of a static surrogate -> a model that runs with numpy and tokenizers, without torch.

A sentence is the mean of its tokens' vectors. The mean of many sentences is one product of a sparse matrix, a row for
each sentence with the places of its tokens, and the table; there is no padding.
"""

from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from scipy.sparse import csr_array

from ctxsim_hf.encoder.find_surrogate import is_static_modules
from ctxsim_hf.encoder.onnx_surrogate import PlainTokenizer
from ctxsim_hf.encoder.part_encoder import NO_LIMIT
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import read_json

TOKENS_PER_BATCH = 1 << 20


class StaticSurrogate:
    """A table of token vectors, (tokens, vector size), as a `VectorModel`."""

    def __init__(self, table: np.ndarray, normalize: bool) -> None:
        self.table, self.normalize = np.ascontiguousarray(table, np.float32), normalize
        self.vector_size, self.tokens_per_batch = table.shape[1], TOKENS_PER_BATCH

    def __call__(self, input_ids: np.ndarray, attention_mask: np.ndarray) -> np.ndarray:
        real = attention_mask.astype(bool)
        return self.mean(input_ids[real], np.concatenate([[0], np.cumsum(real.sum(1))]))

    def mean(self, tokens: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Return the vectors of sentences whose tokens stand one after another: (sentences, vector size)."""
        ones = np.ones(len(tokens), np.float32)
        counts = csr_array((ones, tokens, starts), shape=(len(starts) - 1, len(self.table)))
        vectors: np.ndarray = counts @ self.table / np.maximum(np.diff(starts), 1).astype(np.float32)[:, None]
        if self.normalize:
            vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return vectors


def open_static(folder: Path) -> tuple[StaticSurrogate, PlainTokenizer, int]:
    """Open the table and its tokenizer; sentences of any length are read whole."""
    for name in ("model.safetensors", "tokenizer.json"):
        if not (folder / name).exists():
            raise UserError(f"expected a static surrogate and its tokenizer in {str(folder)!r}, but it has no {name}")
    modules = [module["type"].rsplit(".", 1)[-1] for module in read_json(folder / "modules.json")]
    if not is_static_modules(read_json(folder / "modules.json")) or modules[1:] not in ([], ["Normalize"]):
        raise UserError(
            f"expected StaticEmbedding, and perhaps Normalize, in {str(folder)!r}, found {', '.join(modules)}; "
            "open it with sentence-transformers instead"
        )
    tokenizer = PlainTokenizer(folder / "tokenizer.json", {"split_special_tokens": False, "pad_id": 0})
    return StaticSurrogate(read_table(folder / "model.safetensors"), len(modules) > 1), tokenizer, NO_LIMIT


def read_table(path: Path) -> np.ndarray:
    """Return one row for each token id, float32. Model2vec may store fewer rows, a row number for each id, and its
    weight."""
    weights = load_file(path)
    if "embedding.weight" in weights:
        return weights["embedding.weight"].astype(np.float32)
    table = weights["embeddings"].astype(np.float32)
    if "mapping" in weights:
        table = table[weights["mapping"]]
    if "weights" in weights:
        table = table * weights["weights"].astype(np.float32)[:, None]
    return table
