"""Sentence similarity learned from plain documents: two sentences are alike if they fit the same contexts."""

import importlib
from typing import Any

# `harvest` is a room and a function: importing the room binds its name, so the function takes it afterwards.
from ctxsim_hf import harvest as _room  # noqa: F401
from ctxsim_hf.api import harvest  # noqa: F401
from ctxsim_hf.registration import register_auto_classes

__version__ = "0.1.0"

# Public name -> its module, imported when the name is first used.
_PUBLIC = {
    "Chunk": "ctxsim_hf.text.chunks",
    "Context": "ctxsim_hf.text.chunks",
    "ContextDiscriminatorConfig": "ctxsim_hf.context_models.discriminator.configuration",
    "ContextDiscriminatorModel": "ctxsim_hf.context_models.discriminator.modeling",
    "ContextGeneratorConfig": "ctxsim_hf.context_models.seq2seq.configuration",
    "ContextGeneratorModel": "ctxsim_hf.context_models.seq2seq.modeling",
    "ContextModel": "ctxsim_hf.context_models.base",
    "ContextIndex": "ctxsim_hf.origin.context_index",
    "CrossSurrogateModel": "ctxsim_hf.encoder.modeling_cross_surrogate",
    "HarvestedPairs": "ctxsim_hf.harvest.harvested_pairs",
    "LightContextGeneratorConfig": "ctxsim_hf.context_models.light.configuration",
    "LightContextGeneratorModel": "ctxsim_hf.context_models.light.modeling",
    "OriginSimilarity": "ctxsim_hf.origin.similarity",
    "ScoreWeights": "ctxsim_hf.context_models.score_weights",
    "Signal": "ctxsim_hf.text.signal",
    "SentenceEncoder": "ctxsim_hf.encoder.sentence_encoder",
    "SurrogateModel": "ctxsim_hf.encoder.modeling_surrogate",
    "adapt": "ctxsim_hf.api",
    "SearchIndex": "ctxsim_hf.surrogate.search_index",
    "DocumentIndex": "ctxsim_hf.surrogate.document_index",
    "SearchDocument": "ctxsim_hf.surrogate.document_file",
    "build_index": "ctxsim_hf.api",
    "grow_index": "ctxsim_hf.api",
    "chunk": "ctxsim_hf.api",
    "cluster": "ctxsim_hf.api",
    "evaluate_similarity": "ctxsim_hf.evaluation.evaluate",
    "find_duplicates": "ctxsim_hf.api",
    "harvest": "ctxsim_hf.api",
    "harvest_vectors": "ctxsim_hf.api",
    "register_context_model": "ctxsim_hf.context_models.registry",
    "register_signal": "ctxsim_hf.origin.signals",
    "read_chunks": "ctxsim_hf.text.chunks",
    "train_context_model": "ctxsim_hf.api",
    "train_surrogate": "ctxsim_hf.api",
    "train_tokenizer": "ctxsim_hf.api",
}
__all__ = ["__version__", *_PUBLIC]

register_auto_classes()  # `import ctxsim_hf` is all it takes for AutoModel to open our models


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
