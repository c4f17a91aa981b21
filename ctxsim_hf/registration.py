"""Makes transformers' Auto classes open our models."""

from typing import Any


def register_auto_classes() -> None:
    """Register our model types with AutoConfig and the AutoModels that open them; again changes nothing."""
    from transformers import (
        AutoConfig,
        AutoModel,
        AutoModelForSeq2SeqLM,
        AutoModelForSequenceClassification,
        RobertaConfig,
        RobertaForSequenceClassification,
        RobertaModel,
    )

    from ctxsim_hf.context_models.discriminator.configuration import ContextDiscriminatorConfig
    from ctxsim_hf.context_models.discriminator.modeling import ContextDiscriminatorModel
    from ctxsim_hf.context_models.light.configuration import LightContextGeneratorConfig
    from ctxsim_hf.context_models.light.modeling import LightContextGeneratorModel
    from ctxsim_hf.context_models.seq2seq.configuration import ContextGeneratorConfig
    from ctxsim_hf.context_models.seq2seq.modeling import ContextGeneratorModel
    from ctxsim_hf.encoder.modeling_surrogate import CrossSurrogateModel, SurrogateModel

    for config, model in (
        (ContextDiscriminatorConfig, ContextDiscriminatorModel),
        (ContextGeneratorConfig, ContextGeneratorModel),
        (LightContextGeneratorConfig, LightContextGeneratorModel),
    ):
        AutoConfig.register(config.model_type, config, exist_ok=True)
        AutoModel.register(config, model, exist_ok=True)
    AutoModelForSeq2SeqLM.register(ContextGeneratorConfig, ContextGeneratorModel, exist_ok=True)
    AutoModel.register(RobertaConfig, _or_ours(RobertaModel, SurrogateModel), exist_ok=True)
    AutoModelForSequenceClassification.register(
        RobertaConfig, _or_ours(RobertaForSequenceClassification, CrossSurrogateModel), exist_ok=True
    )


def _or_ours(theirs: Any, ours: Any) -> Any:
    """What opens RoBERTa's model type: `theirs` as ever, but `ours` for a checkpoint that says so in `architectures`.

    Auto classes can choose so by themselves, among a tuple of classes; but then they fail wherever `architectures` is
    None, as in every new RobertaConfig.
    """

    def chosen(config: Any) -> Any:
        return ours if ours.__name__ in (config.architectures or ()) else theirs

    class Chooser(theirs):
        @classmethod
        def from_pretrained(cls, *args: Any, config: Any, **kwargs: Any) -> Any:
            return chosen(config).from_pretrained(*args, config=config, **kwargs)

        @classmethod
        def _from_config(cls, config: Any, **kwargs: Any) -> Any:
            return chosen(config)._from_config(config, **kwargs)

    # To the Auto classes it is theirs: a class of another module would take precedence over a checkpoint's own code.
    Chooser.__name__, Chooser.__module__ = theirs.__name__, theirs.__module__
    return Chooser
