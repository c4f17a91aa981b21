"""A pretrained causal language model and chunks -> the same model, trained further on the user's documents.

    accelerate launch -m ctxsim_hf.train.context_model --init HuggingFaceTB/SmolLM2-135M --chunks chunks --output lm

All weights are trained, or with `--lora-rank` small matrices beside them, which are added to the weights when the
model is saved. Either way the folder is a plain causal language model, for `ctxsim index --context-model` as well as
for AutoModelForCausalLM.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from transformers import PreTrainedModel, TokenizersBackend

from ctxsim_hf.context_models.causal.loading import check_fits, load_causal, longest_text, start_ids
from ctxsim_hf.context_models.causal.lora import add_lora, require_peft
from ctxsim_hf.context_models.causal.right_gain import RightGain
from ctxsim_hf.context_models.causal.scoring import CausalContextModel
from ctxsim_hf.context_models.causal.settings import CausalSettings
from ctxsim_hf.context_models.causal.training_arguments import ContextModelArguments
from ctxsim_hf.context_models.causal.training_rows import save_tokenizer_after_space, stack_rows, token_ranges
from ctxsim_hf.context_models.collators import Tensors
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.fetch import fetch_model
from ctxsim_hf.runtime.files import read_json, write_json
from ctxsim_hf.text.tokenized import tokenize_chunks
from ctxsim_hf.train.batches import length_batches
from ctxsim_hf.train.loop import train
from ctxsim_hf.train.training_stage import run_training

COMMAND = "train context-model"


def run(arguments: ContextModelArguments) -> dict[str, Any]:
    """Run the stage; returns the counts that stage.json records."""
    if arguments.lora_rank is not None:
        require_peft()
    start = fetch_model(arguments.init, "a causal language model", CausalContextModel.files)
    inputs = arguments.inputs(start)
    # In half precision an optimizer's small steps would be lost.
    model, tokenizer = load_causal(start, "cpu", torch.float32)
    check_sizes(model, tokenizer, arguments.max_tokens)
    settings = CausalSettings.load(start)
    check_fits(model.config, settings, sides=2)  # which the held-out gain reads
    return run_training(
        COMMAND, arguments, inputs, tokenizer, lambda: CausalTask(arguments, model, tokenizer, settings), fit
    )


def check_sizes(model: PreTrainedModel, tokenizer: TokenizersBackend, max_tokens: int) -> None:
    """Refuse rows that are longer than the model reads, and tokens that it does not know."""
    limit = longest_text(model.config)
    if limit is not None and max_tokens > limit:
        raise UserError(f"--max-tokens {max_tokens} is more than the {limit} tokens that the model reads; lower it")
    known = model.get_input_embeddings().num_embeddings
    if len(tokenizer) > known:  # fewer is usual: many models round the size of their vocabulary up
        raise UserError(
            f"the vocabularies differ: the model of --init has {known} tokens, its tokenizer {len(tokenizer)}; "
            "use the tokenizer the model was made with"
        )


class CausalTask:
    def __init__(
        self,
        arguments: ContextModelArguments,
        model: PreTrainedModel,
        tokenizer: TokenizersBackend,
        settings: CausalSettings,
    ) -> None:
        self.arguments, self.model, self.settings, self.start = arguments, model, settings, start_ids(tokenizer)
        folder = save_tokenizer_after_space(tokenizer)
        self.chunks, held_out = (tokenize_chunks(arguments.chunks, folder, split) for split in ("train", "held_out"))
        ranges = token_ranges(self.chunks, arguments.max_tokens - len(self.start))
        self.ranges = ranges[np.diff(ranges)[:, 0] + len(self.start) >= 2]  # a token, and one to foretell
        self.right_gain = RightGain(held_out, self.start, settings, arguments.eval_contexts)
        # The wrapper is kept for `merge`; the model itself now computes with the matrices.
        rank, alpha = arguments.lora_rank, arguments.lora_alpha
        self.lora = None if rank is None or alpha is None else add_lora(model, rank, alpha)

    def batches(self, epoch: int) -> list[np.ndarray]:
        rng = np.random.default_rng((self.arguments.seed, epoch))
        lengths = np.diff(self.ranges)[:, 0] + len(self.start)
        return length_batches(lengths, np.zeros_like(lengths), self.arguments.tokens_per_batch, rng)

    def collate(self, batch: np.ndarray, step: int) -> Tensors:
        return stack_rows([self.chunks.tokens[first:end] for first, end in self.ranges[batch]], self.start)

    def evaluate(self, model: PreTrainedModel) -> dict[str, float]:
        return self.right_gain.evaluate(model)

    def merge(self) -> None:
        """Add what LoRA learned to the weights; the model is a plain one again."""
        if self.lora is not None:
            self.model = self.lora.merge_and_unload()
            self.lora = None


def fit(task: CausalTask, arguments: ContextModelArguments, folder: Path, accelerator: Accelerator) -> dict[str, Any]:
    """Train the model; the figures are those of the loop and, with `_before` in their names, those before it."""
    kept = folder / "checkpoints/before.json"  # so that a run that goes on need not evaluate it again
    before: dict[str, float] = read_json(kept)
    if not before:
        with accelerator.autocast():
            before = task.evaluate(task.model.to(accelerator.device))
        if accelerator.is_main_process:
            write_json(kept, before)
    metrics = train(task, arguments, folder, accelerator)
    task.merge()
    if accelerator.is_main_process:
        task.settings.save(folder)
    return metrics | {_before(name): value for name, value in before.items()}


def _before(name: str) -> str:
    """Put `before` into the name of a figure, in front of the end of an interval: `right_gain_before_low`."""
    stem, end = (name.rsplit("_", 1)) if name.endswith(("_low", "_high")) else (name, "")
    return f"{stem}_before_{end}".removesuffix("_")
