"""Makes transformers' Auto classes open our models."""


def register_auto_classes() -> None:
    """Register our model types with AutoConfig, AutoModel and AutoModelForSeq2SeqLM; again changes nothing."""
    from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM

    from ctxsim_hf.models.configuration_ctxsim import (
        ContextDiscriminatorConfig,
        ContextGeneratorConfig,
        LightContextGeneratorConfig,
    )
    from ctxsim_hf.models.modeling_discriminator import ContextDiscriminatorModel
    from ctxsim_hf.models.modeling_generator import ContextGeneratorModel
    from ctxsim_hf.models.modeling_light_generator import LightContextGeneratorModel

    for config, model in (
        (ContextDiscriminatorConfig, ContextDiscriminatorModel),
        (ContextGeneratorConfig, ContextGeneratorModel),
        (LightContextGeneratorConfig, LightContextGeneratorModel),
    ):
        AutoConfig.register(config.model_type, config, exist_ok=True)
        AutoModel.register(config, model, exist_ok=True)
    AutoModelForSeq2SeqLM.register(ContextGeneratorConfig, ContextGeneratorModel, exist_ok=True)
