"""The encoders of transformers that a surrogate can be made of, and how they differ where it matters."""

import inspect

from transformers import PreTrainedConfig, PreTrainedModel

from ctxsim_hf.registration import transformers_class
from ctxsim_hf.runtime.errors import UserError

# These count positions from after the pad id, so that they have as many fewer.
POSITIONS_AFTER_PAD = {
    *("camembert", "data2vec-text", "ibert", "lilt", "longformer", "luke", "markuplm", "mpnet", "roberta"),
    *("roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod"),
}


def encoder_class(config: PreTrainedConfig) -> type[PreTrainedModel]:
    """Return transformers' class for the encoder that a configuration describes, without a head."""
    found = transformers_class("MODEL_MAPPING", config.model_type)
    if found is None or found.main_input_name != "input_ids" or config.is_encoder_decoder:
        raise UserError(f"expected an encoder of text such as BERT or RoBERTa, got a {config.model_type or 'model'}")
    chosen: type[PreTrainedModel] = found
    return chosen


def new_encoder(config: PreTrainedConfig, add_pooling_layer: bool) -> PreTrainedModel:
    """Return an encoder of random weights."""
    found = encoder_class(config)
    return found(config, add_pooling_layer=add_pooling_layer) if takes_pooling_layer(found) else found(config)


def takes_pooling_layer(encoder: type[PreTrainedModel]) -> bool:
    """Whether a class can be told to leave out a pooling layer of its own, which our pooling does not use."""
    return "add_pooling_layer" in inspect.signature(encoder.__init__).parameters


def max_tokens(config: PreTrainedConfig) -> int | None:
    """Return how many tokens an input may have, marks included; None if the encoder sets no limit."""
    positions = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    if positions is None or positions < 1:  # some configurations say -1
        return None
    return int(positions - config.pad_token_id - 1 if config.model_type in POSITIONS_AFTER_PAD else positions)
