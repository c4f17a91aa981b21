"""Train a surrogate that reads one sentence at a time."""

import numpy as np
import torch
from scipy.stats import spearmanr
from transformers import TokenizersBackend

from ctxsim_hf.context_models.collators import Tensors
from ctxsim_hf.encoder.modeling_surrogate import SurrogateModel
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.surrogate.labels import LabelMap, spread_weights
from ctxsim_hf.surrogate.pair_data import SurrogateData
from ctxsim_hf.surrogate.public_data import NUM_CLASSES
from ctxsim_hf.surrogate.row_batches import RowCollator
from ctxsim_hf.surrogate.surrogate_objectives import (
    ClassificationObjective,
    Objective,
    SimilarityObjective,
    TripletObjective,
)
from ctxsim_hf.surrogate.surrogate_start import starting_model
from ctxsim_hf.surrogate.training_arguments import SurrogateArguments
from ctxsim_hf.text.marks import Marks

TOKENS_PER_EVALUATION_BATCH = 8192


class SiameseTask:
    """The training task of a Siamese surrogate: what the loop needs to know."""

    def __init__(self, arguments: SurrogateArguments, tokenizer: TokenizersBackend, data: SurrogateData) -> None:
        self.arguments, self.data = arguments, data
        marks = Marks.of(tokenizer)
        self.train, self.validation = (
            RowCollator(rows, arguments.max_sentence_tokens, marks) for rows in (data.train, data.validation)
        )
        self.targets = data.train.labels
        self.weights: np.ndarray | None = None
        longest = arguments.max_sentence_tokens + marks.size
        surrogate = starting_model(SurrogateModel, arguments, tokenizer, longest, data.train.sentences)
        self.model: Objective = self._objective(surrogate)
        self._baselines = baseline_figures(data) if isinstance(self.model, SimilarityObjective) else {}

    def _objective(self, surrogate: SurrogateModel) -> Objective:
        arguments, labels = self.arguments, self.data.train.labels
        if arguments.objective == "nli":
            return ClassificationObjective(surrogate, NUM_CLASSES)
        if arguments.objective == "triplet":
            return TripletObjective(surrogate, arguments.margin)
        label_map = LabelMap.fit(arguments.labels, labels)
        self.targets = label_map.target(labels)
        if arguments.weight_by_spread:
            self.weights = spread_weights(self.data.train.spreads)
        if label_map != LabelMap():
            surrogate.config.score_range = [label_map.low, label_map.high]  # what the cosines -1 and 1 stand for
        return SimilarityObjective(surrogate, arguments.loss, label_map)

    def batches(self, epoch: int) -> list[np.ndarray]:
        """Return the batches of an epoch, whole groups together."""
        rng = np.random.default_rng((self.arguments.seed, epoch))
        return self.train.batches(self.arguments.tokens_per_batch, rng)

    def collate(self, batch: np.ndarray, step: int) -> Tensors:
        """Return the tensors of a batch, its rows in random order."""
        # CoSENT compares rows within a block, which must not hold those of one group alone.
        batch = np.random.default_rng((self.arguments.seed, 1, step)).permutation(batch)
        tensors = self.train(batch) | {"labels": torch.from_numpy(self.targets[batch])}
        if self.weights is not None:
            tensors["weights"] = torch.from_numpy(self.weights[batch])
        return tensors

    @torch.no_grad()
    def evaluate(self, model: Objective) -> dict[str, float]:
        """Return the figures on the validation rows."""
        model.eval()
        rows = self.data.validation
        members = torch.from_numpy(rows.members.astype(np.int64)).to(model.device)
        return model.figures(self._vectors(model), members, rows.labels) | self._baselines

    def _vectors(self, model: Objective) -> torch.Tensor:
        """Embed all validation sentences."""
        sentences = np.arange(len(self.data.validation.sentences))
        order = np.argsort(-self.validation.lengths(sentences), kind="stable")
        vectors = torch.empty(len(order), model.surrogate.config.hidden_size, device=model.device)
        start = 0
        while start < len(order):
            longest = int(self.validation.lengths(order[start : start + 1])[0])
            batch = order[start : start + max(1, TOKENS_PER_EVALUATION_BATCH // longest)]
            tensors = self.validation.encode(batch)
            vectors[batch] = model.embed(*(tensors[name].to(model.device) for name in ("input_ids", "attention_mask")))
            start += len(batch)
        return vectors


def baseline_figures(data: SurrogateData) -> dict[str, float]:
    """Return the figures of two baselines on the validation pairs: the training mean, and TF-IDF."""
    labels = data.validation.labels.astype(np.float64)
    if not np.isfinite(labels).all() or np.ptp(labels) == 0:
        raise UserError(f"expected different scores in the validation split, its {len(labels)} allow no correlation")
    mean = data.train.labels.mean(dtype=np.float64)
    figures = {"l2_of_the_mean": float(((mean - labels) ** 2).mean())}
    if data.tfidf is not None and np.ptp(data.tfidf) > 0:
        figures["spearman_tfidf"] = float(spearmanr(data.tfidf, labels).statistic)
    return figures
