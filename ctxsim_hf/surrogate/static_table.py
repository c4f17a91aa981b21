"""Token vectors -> a folder for `SentenceTransformer(folder)`, whose sentences are the means of their tokens."""

from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from transformers import TokenizersBackend

from ctxsim_hf.runtime.files import whole_folder, write_json


def save_static_table(vectors: torch.Tensor, tokenizer: TokenizersBackend, folder: Path) -> None:
    """Write a model of one module, sentence-transformers' StaticEmbedding.

    Args:
        vectors (`torch.Tensor`): A row for each token of the vocabulary, as `token_vectors` makes them. Weights are in
            their lengths, since a sentence is their plain mean.
        tokenizer (`TokenizersBackend`): Its special tokens are left out of a sentence.
        folder (`Path`): Must not exist yet.
    """
    plain = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    plain.no_truncation()  # what a call of the tokenizer may have left
    plain.no_padding()
    with whole_folder(folder) as temporary:
        save_file({"embedding.weight": vectors.float().contiguous()}, temporary / "model.safetensors")
        plain.save(str(temporary / "tokenizer.json"))
        module = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.StaticEmbedding"}
        write_json(temporary / "modules.json", [module])
        write_json(temporary / "config_sentence_transformers.json", {"prompts": {}, "similarity_fn_name": "cosine"})
