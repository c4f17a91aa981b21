"""A configuration -> the plain encoder of transformers that a surrogate wraps."""

import inspect

from transformers import PreTrainedConfig, PreTrainedModel

from ctxsim_hf.encoder.static_encoder import StaticConfig, StaticEncoder
from ctxsim_hf.registration import transformers_class
from ctxsim_hf.runtime.errors import UserError

# These models number positions from the pad id on, so that fewer are left for tokens.
POSITIONS_AFTER_PAD = {
    *("camembert", "data2vec-text", "ibert", "lilt", "longformer", "luke", "markuplm", "mpnet", "roberta"),
    *("roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod"),
}


def encoder_class(config: PreTrainedConfig) -> type[PreTrainedModel]:
    """Return the class of transformers for the encoder of a configuration, without a head, or our static one."""
    if config.model_type == StaticConfig.model_type:
        return StaticEncoder
    found = transformers_class("MODEL_MAPPING", config.model_type)
    if found is None or found.main_input_name != "input_ids" or config.is_encoder_decoder:
        raise UserError(f"expected an encoder of text such as BERT or RoBERTa, got a {config.model_type or 'model'}")
    chosen: type[PreTrainedModel] = found
    return chosen


def new_encoder(config: PreTrainedConfig, add_pooling_layer: bool) -> PreTrainedModel:
    """Return an encoder with random weights."""
    found = encoder_class(config)
    return found(config, add_pooling_layer=add_pooling_layer) if takes_pooling_layer(found) else found(config)


def classifier_class(config: PreTrainedConfig) -> type[PreTrainedModel]:
    """Return the class of transformers for the encoder of a configuration with a head that scores."""
    encoder_class(config)  # refuses what is no encoder
    found = transformers_class("MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING", config.model_type)
    if found is None:
        raise UserError(f"expected an encoder that transformers can put a classifier on, got a {config.model_type}")
    chosen: type[PreTrainedModel] = found
    return chosen


def takes_pooling_layer(encoder: type[PreTrainedModel]) -> bool:
    """Return whether a class has the argument `add_pooling_layer`; our pooling does not use such a layer."""
    return "add_pooling_layer" in inspect.signature(encoder.__init__).parameters


def max_tokens(config: PreTrainedConfig) -> int | None:
    """Return the maximum number of tokens of an input, special tokens included, or None if there is no limit."""
    positions = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    if positions is None or positions < 1:  # -1 in some configurations
        return None
    return int(positions - config.pad_token_id - 1 if config.model_type in POSITIONS_AFTER_PAD else positions)
