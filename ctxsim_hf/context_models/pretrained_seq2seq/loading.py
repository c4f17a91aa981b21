"""A folder -> a pretrained seq2seq language model, or one line that says what is missing."""

from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForSeq2SeqLM, PreTrainedConfig, PreTrainedModel, TokenizersBackend
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    MODEL_MAPPING_NAMES,
)

from ctxsim_hf.context_models.pretrained_seq2seq.templates import TEMPLATES
from ctxsim_hf.context_models.reading_settings import SETTINGS_FILE, ReadingSettings
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.pretrained import check_safetensors, explain_opening


def load_seq2seq(folder: Path, device: str) -> PreTrainedModel:
    """Open a model in float32, whatever it is stored in: half precision is slow on a CPU, and T5 overflows in it."""
    with explain_opening("a seq2seq language model", folder):
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
        _check_architecture(config, folder)
        check_safetensors("a seq2seq language model", folder)
        model, report = AutoModelForSeq2SeqLM.from_pretrained(
            folder,
            config=config,
            dtype=torch.float32,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
        )
    if missing := sorted(report["missing_keys"]):
        raise UserError(
            f"expected a seq2seq language model in {str(folder)!r}, but {len(missing)} of its weights are missing, "
            f"such as {missing[0]}"
        )
    return model.to(device).eval()


def check_fits(config: PreTrainedConfig, tokenizer: TokenizersBackend, settings: ReadingSettings) -> None:
    """Refuse a tokenizer or settings by which the model would be asked for what it does not have."""
    if len(tokenizer) > config.vocab_size:
        raise UserError(
            f"the vocabularies differ: the model has {config.vocab_size} tokens, the tokenizer {len(tokenizer)}; "
            "use the tokenizer that the model was trained with"
        )
    if getattr(config, "decoder_start_token_id", None) is None:
        raise UserError("the model's config.json has no decoder_start_token_id; add the one that it was trained with")
    template = TEMPLATES[config.model_type]
    marks = max(len(template.source), len(template.decoder))  # at most
    longest = (2 * settings.width + 1) * settings.max_sentence_tokens + marks
    limit = getattr(config, "max_position_embeddings", None)  # None for T5, whose positions are relative
    if limit is not None and longest > limit:
        raise UserError(
            f"a context of width {settings.width} with sentences of {settings.max_sentence_tokens} tokens takes up to "
            f"{longest} tokens, but the model reads {limit}; lower them in {SETTINGS_FILE}"
        )


def _check_architecture(config: PreTrainedConfig, folder: Path) -> None:
    """Refuse a model with another head. One without a head is as good: its output layer is its token embeddings."""
    tables = (MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES, MODEL_MAPPING_NAMES)
    expected = [table[config.model_type] for table in tables]
    found = config.architectures or expected
    if not set(found) & set(expected):
        raise UserError(
            f"expected a seq2seq language model ({' or '.join(expected)}) in {str(folder)!r}, "
            f"but it is a {', '.join(found)}"
        )
