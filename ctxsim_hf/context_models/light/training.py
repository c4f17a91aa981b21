"""Chunks -> a light generator, by gradient descent on the three directions of Eq. 2 at once."""

import numpy as np
import torch
from transformers import PreTrainedModel

from ctxsim_hf.context_models.collators import SentenceCollator, Tensors
from ctxsim_hf.context_models.context_data import EVALUATION_CONTEXTS, ContextData
from ctxsim_hf.context_models.context_use import evaluate_context_use, unigram_counts
from ctxsim_hf.context_models.generator_arguments import GeneratorArguments
from ctxsim_hf.context_models.light.configuration import LightContextGeneratorConfig
from ctxsim_hf.context_models.light.modeling import LightContextGeneratorModel, SentenceFactors
from ctxsim_hf.context_models.terms import DIRECTIONS
from ctxsim_hf.runtime.presets import filled
from ctxsim_hf.train.batches import chunk_batches


class LightGeneratorTask:
    """Training of a light generator."""

    def __init__(self, arguments: GeneratorArguments, data: ContextData) -> None:
        self.arguments, self.data = arguments, data
        self.train, self.held_out = (
            SentenceCollator(chunks, filled(arguments.width), arguments.max_sentence_tokens, data.special)
            for chunks in (data.train, data.held_out)
        )
        self.model = new_light_generator(arguments, data)

    def batches(self, epoch: int) -> list[np.ndarray]:
        rng = np.random.default_rng((self.arguments.seed, epoch))
        return chunk_batches(self.data.train, self.arguments.tokens_per_batch, self.arguments.max_sentence_tokens, rng)

    def collate(self, batch: np.ndarray, step: int) -> Tensors:
        return self.train(self.data.train.contexts_of(batch))

    @torch.no_grad()
    def evaluate(self, model: PreTrainedModel) -> dict[str, float]:
        model.eval()

        def score(targets: np.ndarray, sources: np.ndarray, direction: str) -> np.ndarray:
            source = self.source(model, self.places(self.held_out, model, sources), direction)
            target = self.places(self.held_out, model, targets)[direction]
            return model.log_prob(source, model.normalisers(source), target).cpu().double().numpy()

        width, longest = self.held_out.width, self.held_out.max_sentence_tokens
        return evaluate_context_use(score, DIRECTIONS, self.data, width, longest, EVALUATION_CONTEXTS)

    @staticmethod
    def places(collator: SentenceCollator, model: PreTrainedModel, contexts: np.ndarray) -> dict[str, SentenceFactors]:
        """Return the factors of the sentences and of the sides of contexts."""
        tensors = {name: tensor.to(model.device) for name, tensor in collator(contexts).items()}
        factors: dict[str, SentenceFactors] = model.encode_places(**tensors)
        return factors

    @staticmethod
    def source(model: PreTrainedModel, places: dict[str, SentenceFactors], direction: str) -> torch.Tensor:
        """Return the source vectors of contexts for a direction."""
        needed = ("left", "right") if direction == "sentence" else ("sentence",)
        source: torch.Tensor = model.source(direction, **{place: places[place] for place in needed})
        return source


def new_light_generator(arguments: GeneratorArguments, data: ContextData) -> LightContextGeneratorModel:
    """Return an untrained model that knows the unigram frequencies."""
    model = LightContextGeneratorModel(
        LightContextGeneratorConfig(
            vocab_size=len(data.tokenizer),
            hidden_size=arguments.hidden_size,
            num_sampled=arguments.num_sampled,
            bos_token_id=data.special.bos,
            pad_token_id=data.special.pad,
            eos_token_id=data.special.eos,
            width=arguments.width,
            max_sentence_tokens=arguments.max_sentence_tokens,
        )
    )
    model.set_unigram_counts(torch.from_numpy(unigram_counts(data)))
    return model
