"""Chunks -> a discriminator that tells the true sentence of a context from replacements (Eq. 1).

accelerate launch -m ctxsim_hf.train.discriminator --chunks chunks --tokenizer tokenizer --output discriminator
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from transformers import PreTrainedModel
from transformers.hf_argparser import HfArg

from ctxsim_hf.context_models.collators import SentenceCollator, Tensors, draw_negatives
from ctxsim_hf.context_models.context_data import ContextData, ContextTrainingArguments
from ctxsim_hf.context_models.context_use import mean_with_interval
from ctxsim_hf.context_models.discriminator.configuration import HEADS, ContextDiscriminatorConfig
from ctxsim_hf.context_models.discriminator.modeling import ContextDiscriminatorModel
from ctxsim_hf.runtime.presets import fill_from_preset, filled
from ctxsim_hf.runtime.validation import Count, OneOf, Share
from ctxsim_hf.train.batches import chunk_batches
from ctxsim_hf.train.training_stage import run_training

COMMAND = "train discriminator"
CONTEXTS_PER_EVALUATION_BATCH = 500


@dataclass(kw_only=True)
class DiscriminatorArguments(ContextTrainingArguments):
    head: Annotated[str, OneOf(HEADS)] = HfArg(
        default="mlp", help="mlp, or linear: exactly Eq. 1, which ranks contexts the same for every sentence."
    )
    embedding_size: Count | None = HfArg(default=None, help="Size of token embeddings; by default the preset's.")
    hidden_size: Count | None = HfArg(default=None, help="Size of one LSTM direction; by default the preset's.")
    head_size: Count | None = HfArg(
        default=None, help="Size of the hidden layer of the mlp head; by default the preset's."
    )
    dropout: Share = HfArg(default=0.1, help="Dropout on token embeddings and on the hidden layer of the head.")

    marks: ClassVar[tuple[str, ...]] = ("pad_token",)

    def __post_init__(self) -> None:
        super().__post_init__()
        fill_from_preset(self, "discriminator")


def run(arguments: DiscriminatorArguments) -> dict[str, Any]:
    """Run the stage and return the counts that stage.json records."""
    inputs = arguments.inputs()
    data = ContextData.open(arguments)
    return run_training(COMMAND, arguments, inputs, data.tokenizer, lambda: DiscriminatorTask(arguments, data))


class DiscriminatorTask:
    """Training of a discriminator."""

    def __init__(self, arguments: DiscriminatorArguments, data: ContextData) -> None:
        self.arguments, self.data = arguments, data
        self.train, self.held_out = (
            SentenceCollator(chunks, filled(arguments.width), arguments.max_sentence_tokens, data.special)
            for chunks in (data.train, data.held_out)
        )
        self.model = ContextDiscriminatorModel(
            ContextDiscriminatorConfig(
                vocab_size=len(data.tokenizer),
                embedding_size=arguments.embedding_size,
                hidden_size=arguments.hidden_size,
                head=arguments.head,
                head_size=arguments.head_size,
                dropout=arguments.dropout,
                pad_token_id=data.special.pad,
                width=arguments.width,
                max_sentence_tokens=arguments.max_sentence_tokens,
            )
        )

    def batches(self, epoch: int) -> list[np.ndarray]:
        rng = np.random.default_rng((self.arguments.seed, epoch))
        return chunk_batches(self.data.train, self.arguments.tokens_per_batch, self.arguments.max_sentence_tokens, rng)

    def collate(self, batch: np.ndarray, step: int) -> Tensors:
        contexts = self.data.train.contexts_of(batch)
        negatives = draw_negatives(self.data.train, contexts, np.random.default_rng((self.arguments.seed, 1, step)))
        candidates = np.concatenate([contexts[:, None], negatives], axis=1)
        labels = torch.zeros(candidates.shape)
        labels[:, 0] = 1
        return self.train(contexts, candidates) | {"labels": labels}

    @torch.no_grad()
    def evaluate(self, model: PreTrainedModel) -> dict[str, float]:
        """Return how often the true sentence scores above a replacement, from another document and from its own, with
        intervals. A tie counts half."""
        contexts = self.data.evaluation_contexts()
        negatives = draw_negatives(self.data.held_out, contexts, np.random.default_rng(0))
        candidates = np.concatenate([contexts[:, None], negatives], axis=1)
        model.eval()
        logits = []
        for start in range(0, len(contexts), CONTEXTS_PER_EVALUATION_BATCH):
            rows = slice(start, start + CONTEXTS_PER_EVALUATION_BATCH)
            tensors = self.held_out(contexts[rows], candidates[rows])
            logits.append(model(**{name: tensor.to(model.device) for name, tensor in tensors.items()}).logits.cpu())
        true, same_document, corpus = torch.cat(logits).double().T
        documents = self.data.held_out.documents_of(contexts)
        figures: dict[str, float] = {}
        for name, replacement in {"accuracy_corpus": corpus, "accuracy_same_document": same_document}.items():
            wins = ((true > replacement).double() + 0.5 * (true == replacement).double()).numpy()
            figures |= mean_with_interval(name, wins, np.ones(len(wins)), documents)
        return figures
