"""Sentence similarity learned from plain documents: two sentences are alike if they fit the same contexts."""

import importlib
from typing import Any

from ctxsim_hf.registration import register_auto_classes

__version__ = "0.1.0"

# Public name -> its module, imported when the name is first used.
_PUBLIC = {
    "Chunk": "ctxsim_hf.text.chunks",
    "Context": "ctxsim_hf.text.chunks",
    "ContextDiscriminatorConfig": "ctxsim_hf.context_models.configuration_ctxsim",
    "ContextDiscriminatorModel": "ctxsim_hf.context_models.discriminator.modeling",
    "ContextGeneratorConfig": "ctxsim_hf.context_models.configuration_ctxsim",
    "ContextGeneratorModel": "ctxsim_hf.context_models.seq2seq.modeling",
    "ContextIndex": "ctxsim_hf.origin.context_index",
    "ContextScorer": "ctxsim_hf.origin.fit_score",
    "CrossSurrogateModel": "ctxsim_hf.encoder.modeling_surrogate",
    "HarvestedPairs": "ctxsim_hf.harvest.harvested_pairs",
    "LightContextGeneratorConfig": "ctxsim_hf.context_models.configuration_ctxsim",
    "LightContextGeneratorModel": "ctxsim_hf.context_models.light.modeling",
    "OriginSimilarity": "ctxsim_hf.origin.similarity",
    "ScoreWeights": "ctxsim_hf.origin.score_weights",
    "SentenceEncoder": "ctxsim_hf.encoder.sentence_encoder",
    "SurrogateModel": "ctxsim_hf.encoder.modeling_surrogate",
    "evaluate_similarity": "ctxsim_hf.evaluation.evaluate",
    "read_chunks": "ctxsim_hf.text.chunks",
}
__all__ = ["__version__", *_PUBLIC]

register_auto_classes()  # `import ctxsim_hf` is all it takes for AutoModel to open our models


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
