"""A folder -> a causal language model and its tokenizer. Weights in GGUF are turned into ordinary ones."""

from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    TokenizersBackend,
)

from ctxsim_hf.context_models.reading_settings import SETTINGS_FILE, ReadingSettings
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.fetch import only_gguf
from ctxsim_hf.runtime.pretrained import check_safetensors, explain_opening
from ctxsim_hf.text.fast_tokenizer import open_tokenizer

GGUF = "*.gguf"
CAUSAL_HEADS = ("ForCausalLM", "LMHeadModel")  # BERT has the latter for a decoder, and names it if it is one


def find_gguf(folder: Path) -> Path | None:
    """Return the one GGUF file of a folder that has no weights of another kind; None if it has other weights. The
    name of a GGUF file stands for itself."""
    if folder.is_file():
        return folder
    if any(folder.glob("*.safetensors")):
        return None
    name = only_gguf(str(folder), (path.name for path in folder.glob(GGUF)))
    return None if name is None else folder / name


def load_causal(
    folder: Path, device: str, dtype: torch.dtype | None = None
) -> tuple[PreTrainedModel, TokenizersBackend]:
    """Open a language model.

    Args:
        folder (`Path`): Its folder, or a GGUF file.
        device (`str`): Where to put it.
        dtype (`torch.dtype`, *optional*): Type of its weights. None takes the one that scores fastest on this device.
    """
    dtype = dtype or scoring_dtype(device)
    gguf = find_gguf(folder)
    with explain_opening("a causal language model", gguf or folder):
        if gguf is not None:
            return _load_gguf(gguf, dtype, device)
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
        if not any(name.endswith(CAUSAL_HEADS) for name in config.architectures or ()):
            raise ValueError(f"its config.json names the architectures {config.architectures}")
        check_safetensors("a causal language model", folder)
        model = AutoModelForCausalLM.from_pretrained(
            folder, config=config, dtype=dtype, use_safetensors=True, trust_remote_code=False
        )
        return model.to(device).eval(), open_tokenizer(folder)


def longest_text(config: PreTrainedConfig) -> int | None:
    """Return how many tokens a model reads; None for one without such a limit, as BLOOM, whose attention needs no
    positions."""
    limit: int | None = getattr(config.get_text_config(), "max_position_embeddings", None)
    return limit


def check_fits(config: PreTrainedConfig, settings: ReadingSettings, sides: int) -> None:
    """Refuse settings by which a sentence and so many sides of its context may be more than the model reads."""
    longest = (sides * settings.width + 1) * settings.max_sentence_tokens + 1  # a mark begins it, at most
    limit = longest_text(config)
    if limit is not None and longest > limit:
        raise UserError(
            f"a context of width {settings.width} with sentences of {settings.max_sentence_tokens} tokens takes up to "
            f"{longest} tokens, but the model reads {limit}; lower them in {SETTINGS_FILE}"
        )


def start_ids(tokenizer: TokenizersBackend) -> list[int]:
    """Return the mark that begins a text for this tokenizer; GPT-2's kind begins with none."""
    start = [tokenizer.bos_token_id]
    return start if tokenizer("")["input_ids"][:1] == start else []


def scoring_dtype(device: str) -> torch.dtype:
    """Return bfloat16 for a GPU, and for a CPU that multiplies in it, where it is twice as fast; else float32."""
    if torch.device(device).type != "cpu":
        return torch.bfloat16
    capabilities = torch.cpu.get_capabilities()
    return torch.bfloat16 if capabilities.get("avx512_bf16") or capabilities.get("amx_bf16") else torch.float32


def _load_gguf(path: Path, dtype: torch.dtype, device: str) -> tuple[PreTrainedModel, TokenizersBackend]:
    try:
        import gguf  # noqa: F401
    except ImportError as error:
        raise UserError(f"{str(path)!r} needs the package gguf: pip install 'ctxsim-hf[lm]'") from error
    where: dict[str, Any] = {"pretrained_model_name_or_path": path.parent, "gguf_file": path.name}
    quantised = AutoModelForCausalLM.from_pretrained(**where, trust_remote_code=False)
    config = quantised.config
    del config.quantization_config  # its weights were made ordinary ones; with it they could be neither cast nor saved
    model = AutoModelForCausalLM.from_config(config, dtype=dtype)  # not cast later: rotary frequencies stay in float32
    model.load_state_dict(quantised.state_dict())
    tokenizer = AutoTokenizer.from_pretrained(**where, trust_remote_code=False)
    if _begins_texts(path) and not start_ids(tokenizer):  # transformers leaves the mark out, and Gemma fails without
        tokenizer.add_bos_token = True
    return model.to(device).eval(), tokenizer


def _begins_texts(path: Path) -> bool:
    """Return whether the model of a GGUF file was trained on texts that begin with a mark."""
    from gguf import GGUFReader

    field = GGUFReader(path).get_field("tokenizer.ggml.add_bos_token")
    return field is not None and bool(field.contents())
