"""LoRA through peft: small matrices beside the frozen weights of a language model, added to them in the end."""

from typing import TYPE_CHECKING

from transformers import PreTrainedModel

from ctxsim_hf.runtime.errors import UserError

if TYPE_CHECKING:
    from peft import PeftModel


def require_peft() -> None:
    """Refuse to go on without peft."""
    try:
        import peft  # noqa: F401
    except ImportError as error:
        raise UserError("--lora-rank needs the package peft: pip install 'ctxsim-hf[lm]'") from error


def add_lora(model: PreTrainedModel, rank: int, alpha: float) -> "PeftModel":
    """Freeze a model and put matrices beside its attention and MLP projections, in place. The first of each pair is
    random, the second zero, so that nothing is changed yet."""
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(r=rank, lora_alpha=alpha, target_modules="all-linear", task_type="CAUSAL_LM")
    return get_peft_model(model, config)
