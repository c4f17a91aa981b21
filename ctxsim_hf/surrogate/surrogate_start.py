"""The weights that a surrogate starts from: none, any encoder's, or the token vectors of a light
generator or a language model."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import (
    PreTrainedConfig,
    PreTrainedModel,
    RobertaConfig,
    TokenizersBackend,
)

from ctxsim_hf.context_models.causal.scoring import CausalContextModel
from ctxsim_hf.context_models.context_data import check_vocabulary
from ctxsim_hf.context_models.light.configuration import LightContextGeneratorConfig
from ctxsim_hf.context_models.light.modeling import LightContextGeneratorModel
from ctxsim_hf.context_models.registry import context_model_class, model_type_of
from ctxsim_hf.encoder.modeling_surrogate import SurrogateModel, static_surrogate
from ctxsim_hf.encoder.plain_encoder import classifier_class, encoder_class, max_tokens
from ctxsim_hf.encoder.static_encoder import StaticConfig
from ctxsim_hf.encoder.surrogate_folder import check_text
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.fetch import fetch_model
from ctxsim_hf.runtime.presets import filled
from ctxsim_hf.runtime.pretrained import explain_opening, open_auto_tokenizer, open_config
from ctxsim_hf.surrogate.generator_start import TableSettings, start_as_mean, token_states, token_vectors
from ctxsim_hf.surrogate.training_arguments import STATIC, SurrogateArguments
from ctxsim_hf.surrogate.word_table import TokenTable
from ctxsim_hf.text.tokenized import TokenizedSentences

# The names that encoders give to their dropout rates.
DROPOUT_NAMES = (
    *("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout"),
    *("attention_dropout", "embedding_dropout", "mlp_dropout"),
)


def read_tokenizer(name: str) -> TokenizersBackend:
    """Open a tokenizer by its folder or id. A folder of model2vec has tokenizer.json alone."""
    if not (path := Path(name) / "tokenizer.json").exists() or (Path(name) / "tokenizer_config.json").exists():
        opened: TokenizersBackend = open_auto_tokenizer(name)
        return opened
    tokenizer = TokenizersBackend(tokenizer_file=str(path))
    tokenizer.backend_tokenizer.no_truncation()  # which the file may hold
    tokenizer.backend_tokenizer.no_padding()
    return tokenizer


def starting_model(
    kind: type[PreTrainedModel],
    arguments: SurrogateArguments,
    tokenizer: TokenizersBackend,
    longest: int,
    sentences: TokenizedSentences,
) -> Any:
    """Return a model of this kind for inputs of up to `longest` tokens. The training `sentences` say how often a token
    occurs, where the vectors it starts from do not."""
    if arguments.kind == STATIC:
        return _static_model(arguments, tokenizer, sentences)
    if arguments.start is not None:
        model = _from_checkpoint(kind, arguments.start, arguments, tokenizer, longest)
    else:
        model = kind(_new_config(arguments, tokenizer, longest))
        if arguments.token_embeddings:
            table = _token_table(arguments.token_embeddings, tokenizer, sentences)
            _set_token_embeddings(model, table, tokenizer, arguments.table_settings)
    if arguments.gradient_checkpointing:
        model.gradient_checkpointing_enable()
    return model


def _static_model(
    arguments: SurrogateArguments, tokenizer: TokenizersBackend, sentences: TokenizedSentences
) -> SurrogateModel:
    """Return a surrogate that is the mean of its tokens' vectors."""
    if arguments.start is not None:
        with explain_opening("a static model", arguments.start):
            model: SurrogateModel = SurrogateModel.from_pretrained(arguments.start)
        if len(tokenizer) > model.config.vocab_size:
            check_vocabulary(model.config.vocab_size, tokenizer, f"the static model {arguments.init!r}")
        _check_same_tokens(arguments.start, tokenizer)
        return model
    if not arguments.token_embeddings:
        return SurrogateModel(StaticConfig(vocab_size=len(tokenizer), hidden_size=filled(arguments.hidden_size)))
    table = _token_table(arguments.token_embeddings, tokenizer, sentences)
    tokens = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    special = tokenizer.all_special_ids
    vectors = token_vectors(table, filled(arguments.hidden_size), tokens, special, arguments.table_settings)
    return static_surrogate(SurrogateModel, vectors)


def _new_config(arguments: SurrogateArguments, tokenizer: TokenizersBackend, longest: int) -> RobertaConfig:
    return RobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=arguments.hidden_size,
        num_hidden_layers=arguments.layers,
        num_attention_heads=arguments.heads,
        intermediate_size=arguments.ffn_size,
        hidden_dropout_prob=filled(arguments.dropout),
        attention_probs_dropout_prob=filled(arguments.dropout),
        max_position_embeddings=longest + tokenizer.pad_token_id + 1,  # RoBERTa counts positions from after the pad id
        type_vocab_size=1,
        layer_norm_eps=1e-5,
        bos_token_id=tokenizer.bos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )


def _from_checkpoint(
    kind: type[PreTrainedModel],
    folder: Path,
    arguments: SurrogateArguments,
    tokenizer: TokenizersBackend,
    longest: int,
) -> PreTrainedModel:
    name, config = str(arguments.init), open_config(folder)
    _check_start(kind, config, name)
    check_text(folder)
    if len(tokenizer) > config.vocab_size:  # unused embeddings do no harm
        check_vocabulary(config.vocab_size, tokenizer, f"the checkpoint {name!r}")
    _check_same_tokens(folder, tokenizer)
    limit = max_tokens(config)
    if limit is not None and limit < longest:
        raise UserError(
            f"the checkpoint {name!r} reads {limit} tokens at most, {longest} are asked for; "
            "lower --max-sentence-tokens"
        )
    rates = [rate for rate in DROPOUT_NAMES if hasattr(config, rate)]
    changed = {} if arguments.dropout is None else dict.fromkeys(rates, arguments.dropout)
    with explain_opening("a model", name):
        return kind.from_pretrained(folder, dtype=torch.float32, **changed)


def _check_start(kind: type[PreTrainedModel], config: PreTrainedConfig, name: str) -> None:
    try:
        (encoder_class if kind is SurrogateModel else classifier_class)(config)
    except UserError as error:
        raise UserError(f"--init {name!r} cannot start a surrogate: {error}") from error


def _token_table(name: str, tokenizer: TokenizersBackend, sentences: TokenizedSentences) -> TokenTable:
    expected = "for --token-embeddings the folder of a light generator or a causal language model,"
    folder = fetch_model(name, expected, CausalContextModel.files)
    model_type = model_type_of(folder)
    if model_type == LightContextGeneratorConfig.model_type:
        with explain_opening("a light generator", folder):
            generator = LightContextGeneratorModel.from_pretrained(folder)
        check_vocabulary(generator.config.vocab_size, tokenizer, f"the checkpoint {name!r}")
        _check_same_tokens(folder, tokenizer)
        return TokenTable.from_light_generator(generator)
    if not issubclass(context_model_class(model_type), CausalContextModel):
        raise UserError(
            f"--token-embeddings must be a light generator or a causal language model, {name!r} is a {model_type}"
        )
    return TokenTable.from_language_model(folder, tokenizer, np.bincount(sentences.tokens, minlength=len(tokenizer)))


@torch.no_grad()
def _set_token_embeddings(
    model: Any, table: TokenTable, tokenizer: TokenizersBackend, settings: TableSettings
) -> None:
    """Let a surrogate start as the mean of these vectors and their letters. A cross surrogate, which takes no mean,
    starts with them as strong as RoBERTa starts its own."""
    own = model.base_model.embeddings.word_embeddings.weight
    marks = [tokenizer.bos_token_id, tokenizer.eos_token_id]  # which are in every sentence
    tokens = tokenizer.convert_ids_to_tokens(list(range(len(own))))
    own.copy_(token_states(table, own.shape[1], tokens, marks, settings))
    own[tokenizer.pad_token_id] = 0
    if isinstance(model, SurrogateModel):
        start_as_mean(model.base_model)
    else:
        own *= model.config.initializer_range


def _check_same_tokens(folder: Path, tokenizer: TokenizersBackend) -> None:
    if (folder / "tokenizer.json").exists():
        theirs, ours = read_tokenizer(str(folder)).get_vocab(), tokenizer.get_vocab()
        if different := sum(theirs.get(token) != number for token, number in ours.items()):
            raise UserError(
                f"the vocabularies differ: {different} of {len(ours)} tokens have other ids in {str(folder)!r}; "
                "use the tokenizer the model was made with"
            )
