"""Chunks -> the paper's seq2seq generator, in one direction or in all three."""

from typing import NamedTuple

import numpy as np
import torch
from transformers import PreTrainedModel

from ctxsim_hf.context_models.collators import Tensors
from ctxsim_hf.context_models.context_data import ContextData, check_vocabulary
from ctxsim_hf.context_models.context_use import evaluate_context_use
from ctxsim_hf.context_models.generator_arguments import GeneratorArguments
from ctxsim_hf.context_models.seq2seq.configuration import ContextGeneratorConfig
from ctxsim_hf.context_models.seq2seq.modeling import ContextGeneratorModel
from ctxsim_hf.context_models.seq2seq.windows import GeneratorCollator
from ctxsim_hf.context_models.terms import DIRECTIONS
from ctxsim_hf.runtime.presets import filled
from ctxsim_hf.runtime.pretrained import open_config
from ctxsim_hf.text.tokenized import TokenizedChunks
from ctxsim_hf.train.batches import length_batches

EVALUATION_CONTEXTS = 1000
CONTEXTS_PER_EVALUATION_BATCH = 50


class DirectedBatch(NamedTuple):
    """Contexts of a batch, and what to generate for them."""

    direction: str
    contexts: np.ndarray


class Seq2SeqGeneratorTask:
    """Training of a seq2seq generator."""

    def __init__(self, arguments: GeneratorArguments, data: ContextData) -> None:
        self.arguments, self.data = arguments, data
        self.directions = DIRECTIONS if arguments.direction == "all" else (str(arguments.direction),)
        self.train, self.held_out = (self._collator(chunks) for chunks in (data.train, data.held_out))
        self.model = self._new_model()
        if arguments.gradient_checkpointing:
            self.model.gradient_checkpointing_enable()

    def _collator(self, chunks: TokenizedChunks) -> GeneratorCollator:
        arguments, for_all = self.arguments, self.arguments.direction == "all"
        return GeneratorCollator(
            chunks, filled(arguments.width), arguments.max_sentence_tokens, self.data.special, for_all
        )

    def _new_model(self) -> ContextGeneratorModel:
        arguments = self.arguments
        width = self.train.width
        ours = {
            "direction": arguments.direction,
            "max_sentences": 2 * width + 1,
            "max_sentence_tokens": arguments.max_sentence_tokens,
        }
        if arguments.start is not None:
            vocab_size = open_config(arguments.start).vocab_size
            check_vocabulary(vocab_size, self.data.tokenizer, f"the checkpoint {arguments.init!r}")
            # Checkpoints on the Hub are often in half precision, which loses the small steps of an optimizer.
            model: ContextGeneratorModel = ContextGeneratorModel.from_pretrained(
                arguments.start, dtype=torch.float32, **ours
            )
            return model
        special = self.data.special
        return ContextGeneratorModel(
            ContextGeneratorConfig(
                vocab_size=len(self.data.tokenizer),
                d_model=arguments.hidden_size,
                encoder_layers=arguments.layers,
                decoder_layers=arguments.layers,
                encoder_attention_heads=arguments.heads,
                decoder_attention_heads=arguments.heads,
                encoder_ffn_dim=arguments.ffn_size,
                decoder_ffn_dim=arguments.ffn_size,
                dropout=arguments.dropout,
                # BART's 0.02 suits a width of 1024. A narrow model initialised like this needs thousands of steps
                # before its decoder uses the source at all.
                init_std=filled(arguments.hidden_size) ** -0.5,
                max_position_embeddings=(2 * width + 1) * (arguments.max_sentence_tokens + 1) + 1,
                bos_token_id=special.bos,
                pad_token_id=special.pad,
                eos_token_id=special.eos,
                decoder_start_token_id=special.eos,
                forced_eos_token_id=special.eos,
                **ours,
            )
        )

    def batches(self, epoch: int) -> list[DirectedBatch]:
        rng = np.random.default_rng((self.arguments.seed, epoch))
        contexts = self.data.train.contexts_of(np.arange(self.data.train.num_chunks))
        batches = []
        for direction in self.directions:
            sources, targets = self.train.lengths(contexts, direction)
            for rows in length_batches(sources, targets, self.arguments.tokens_per_batch, rng):
                batches.append(DirectedBatch(direction, contexts[rows]))
        return [batches[i] for i in rng.permutation(len(batches))]

    def collate(self, batch: DirectedBatch, step: int) -> Tensors:
        return self.train(batch.contexts, batch.direction)

    @torch.no_grad()
    def evaluate(self, model: PreTrainedModel) -> dict[str, float]:
        model.eval()

        def score(targets: np.ndarray, sources: np.ndarray, direction: str) -> np.ndarray:
            scores = []
            for start in range(0, len(targets), CONTEXTS_PER_EVALUATION_BATCH):
                rows = slice(start, start + CONTEXTS_PER_EVALUATION_BATCH)
                tensors = self.held_out(sources[rows], direction)
                tensors["labels"] = self.held_out(targets[rows], direction)["labels"]
                on_device = {name: tensor.to(model.device) for name, tensor in tensors.items()}
                scores.append(model.log_prob(**on_device).cpu().double().numpy())
            return np.concatenate(scores)

        width, longest = self.held_out.width, self.held_out.max_sentence_tokens
        return evaluate_context_use(score, self.directions, self.data, width, longest, EVALUATION_CONTEXTS)
