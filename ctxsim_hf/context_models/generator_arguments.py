"""The arguments of `ctxsim train generator`."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

from transformers.hf_argparser import HfArg

from ctxsim_hf.context_models.context_data import ContextTrainingArguments
from ctxsim_hf.context_models.registry import describe_context_model, model_type_of
from ctxsim_hf.context_models.terms import DIRECTIONS
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.fetch import fetch_folder, hub_id
from ctxsim_hf.runtime.presets import Preset, fill_from_preset
from ctxsim_hf.runtime.pretrained import check_safetensors
from ctxsim_hf.runtime.validation import Count, CountOrZero, OneOf, Share

GENERATOR_KINDS = ("light", "seq2seq")
STARTS = ("bart", "ctxsim_generator")  # model types that --init can name


@dataclass(kw_only=True)
class GeneratorArguments(ContextTrainingArguments):
    """The flags of both kinds of generator."""

    tokenizer: str = HfArg(
        default="",
        help="Folder made by ctxsim train-tokenizer, or any with a fast tokenizer; by default that of --init.",
    )
    kind: Annotated[str, OneOf(GENERATOR_KINDS)] | None = HfArg(
        default=None, help="light or seq2seq; by default seq2seq where a --direction is given."
    )
    preset: Preset | None = HfArg(default=None, help="Default sizes; by default light, or small for seq2seq.")
    direction: Annotated[str, OneOf((*DIRECTIONS, "all"))] | None = HfArg(
        default=None, help=f"seq2seq: what it generates: {', '.join(DIRECTIONS)}, or all."
    )
    init: str | None = HfArg(default=None, help="seq2seq: start from this BART checkpoint, folder or id on the Hub.")
    hidden_size: Count | None = HfArg(default=None, help="Width of the model; by default the preset's.")
    layers: Count | None = HfArg(default=None, help="seq2seq: layers of the encoder and of the decoder.")
    heads: Count | None = HfArg(default=None, help="seq2seq: attention heads.")
    ffn_size: Count | None = HfArg(default=None, help="seq2seq: width of the feed-forward layers.")
    dropout: Share = HfArg(default=0.1, help="seq2seq: dropout.")
    gradient_checkpointing: bool = HfArg(default=False, help="seq2seq: less memory for more time.")
    num_sampled: CountOrZero = HfArg(
        default=1000, help="light: sampled tokens in the softmax of training; 0 uses the whole vocabulary."
    )
    closed_form: bool = HfArg(
        default=False, help="light: compute the weights from co-occurrence counts, without gradient steps."
    )

    unrecorded: ClassVar[tuple[str, ...]] = (*ContextTrainingArguments.unrecorded, "init")
    marks: ClassVar[tuple[str, ...]] = ("bos_token", "pad_token", "eos_token")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.kind = self.kind or ("seq2seq" if self.direction or self.init else "light")
        if self.kind == "light":
            if self.direction or self.init:
                raise UserError(
                    "--direction and --init are for --kind seq2seq; a light generator covers all directions and "
                    "starts from no checkpoint"
                )
        elif self.direction is None:
            raise UserError(f"--kind seq2seq needs a --direction: one of {', '.join(DIRECTIONS)}, all")
        elif self.closed_form:
            raise UserError("--closed-form is for --kind light; leave it out for seq2seq")
        if not (self.tokenizer or self.init):
            raise UserError("--tokenizer is needed where there is no --init to take it from")
        self.preset = self.preset or ("light" if self.kind == "light" else "small")
        fill_from_preset(self, "light_generator" if self.kind == "light" else "generator")
        if self.kind == "seq2seq" and self.hidden_size and self.heads and self.hidden_size % self.heads:
            raise UserError(f"--hidden-size {self.hidden_size} is not a multiple of --heads {self.heads}")

    @cached_property
    def start(self) -> Path | None:
        """The folder of the checkpoint that --init names, downloaded if necessary; None if there is no --init."""
        if self.init is None:
            return None
        folder = fetch_folder(self.init, "a BART checkpoint")
        if (model_type := model_type_of(folder)) not in STARTS:
            raise UserError(f"--init must be a BART checkpoint, but {self.init!r} is a {model_type}")
        check_safetensors("a BART checkpoint", folder)  # the bytes that `inputs` describes
        return folder

    def inputs(self) -> dict[str, Any]:
        """Describe what is read, for stage.json."""
        if self.init is None or self.start is None:
            return super().inputs()
        return super().inputs() | {"init": describe_context_model(self.start) | hub_id(self.init)}
