"""The contextual models: who they are, and how transformers' Auto classes find them."""

from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM

from .configuration_ctxsim import (
    DIRECTIONS,
    ContextDiscriminatorConfig,
    ContextGeneratorConfig,
    LightContextGeneratorConfig,
)
from .modeling_discriminator import ContextDiscriminatorModel, ContextDiscriminatorOutput
from .modeling_generator import ContextGeneratorModel
from .modeling_light_generator import LightContextGeneratorModel, LightContextGeneratorOutput, SentenceFactors

__all__ = [
    "DIRECTIONS",
    "ContextDiscriminatorConfig",
    "ContextDiscriminatorModel",
    "ContextDiscriminatorOutput",
    "ContextGeneratorConfig",
    "ContextGeneratorModel",
    "LightContextGeneratorConfig",
    "LightContextGeneratorModel",
    "LightContextGeneratorOutput",
    "SentenceFactors",
    "register_auto_classes",
]


def register_auto_classes() -> None:
    """Make AutoConfig, AutoModel and AutoModelForSeq2SeqLM open these models; calling it again changes nothing."""
    for config, model in (
        (ContextDiscriminatorConfig, ContextDiscriminatorModel),
        (ContextGeneratorConfig, ContextGeneratorModel),
        (LightContextGeneratorConfig, LightContextGeneratorModel),
    ):
        AutoConfig.register(config.model_type, config, exist_ok=True)
        AutoModel.register(config, model, exist_ok=True)
    AutoModelForSeq2SeqLM.register(ContextGeneratorConfig, ContextGeneratorModel, exist_ok=True)
