"""Train a surrogate that reads one sentence at a time."""

from dataclasses import replace

import numpy as np
import torch
from accelerate import PartialState
from scipy.stats import spearmanr
from tqdm import tqdm
from transformers import TokenizersBackend

from ctxsim_hf.context_models.collators import Tensors
from ctxsim_hf.encoder.modeling_surrogate import SurrogateModel
from ctxsim_hf.encoder.sentence_transformers_files import read_text_settings
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.surrogate.labels import LabelMap, spread_weights
from ctxsim_hf.surrogate.pair_data import SurrogateData
from ctxsim_hf.surrogate.row_batches import RowCollator
from ctxsim_hf.surrogate.surrogate_losses import cosines
from ctxsim_hf.surrogate.surrogate_objectives import (
    ContrastObjective,
    Objective,
    SimilarityObjective,
    TripletObjective,
)
from ctxsim_hf.surrogate.surrogate_start import starting_model
from ctxsim_hf.surrogate.teacher_data import TeacherCollator, TeacherData
from ctxsim_hf.surrogate.training_arguments import STATIC, SurrogateArguments
from ctxsim_hf.text.marks import Marks

TOKENS_PER_EVALUATION_BATCH = 8192
SCALE_ROWS = 4000  # whose cosines by the start say what its scale is
OF_ROWS = ("members", "labels", "weights")  # tensors with an entry for each row


class SiameseTask:
    """The training task of a Siamese surrogate: what the loop needs to know."""

    def __init__(self, arguments: SurrogateArguments, tokenizer: TokenizersBackend, data: SurrogateData) -> None:
        self.arguments, self.data = arguments, data
        marks = _marks(arguments, tokenizer)
        self.train, self.validation = (
            RowCollator(rows, arguments.max_sentence_tokens, marks) for rows in (data.train, data.validation)
        )
        if isinstance(data, TeacherData):
            self.train = TeacherCollator(data.train, arguments.max_sentence_tokens, marks, data.vectors)
        self.label_map: LabelMap | None = None
        self.weights: np.ndarray | None = None
        longest = arguments.max_sentence_tokens + marks.size
        surrogate = starting_model(SurrogateModel, arguments, tokenizer, longest, data.train.sentences)
        self.model: Objective = self._objective(surrogate)
        self.baselines = baseline_figures(data) if isinstance(self.model, SimilarityObjective) else {}

    def _objective(self, surrogate: SurrogateModel) -> Objective:
        arguments, labels = self.arguments, self.data.train.labels
        if arguments.objective == "nli":
            return ContrastObjective(surrogate)
        if arguments.objective == "triplet":
            return TripletObjective(surrogate, arguments.margin)
        if arguments.weight_by_spread:
            self.weights = spread_weights(self.data.train.spreads)
        if arguments.labels == "start":
            self.label_map = LabelMap.matching(*self._start_cosines(surrogate))
        else:
            self.label_map = LabelMap.fit(str(arguments.labels), labels)
        if arguments.labels == "stretched":
            # What the cosines -1 and 1 stand for.
            surrogate.config.score_range = [self.label_map.low, self.label_map.high]
        return SimilarityObjective(surrogate, arguments.loss, self.label_map)

    def _start_cosines(self, surrogate: SurrogateModel) -> tuple[np.ndarray, np.ndarray]:
        """Return the labels of some training rows, and the start's cosines of these."""
        rows = self.data.train
        some = np.unique(np.linspace(0, len(rows) - 1, SCALE_ROWS, dtype=np.int64))
        present, places = np.unique(rows.members[some], return_inverse=True)
        vectors = self._vectors(SimilarityObjective(surrogate, "l2", LabelMap()).eval(), self.train, present)
        found = cosines(vectors, torch.from_numpy(places.reshape(len(some), -1)))
        return rows.labels[some].astype(np.float64), found.double().numpy()

    def batches(self, epoch: int) -> list[np.ndarray]:
        """Return the batches of an epoch, whole groups together."""
        rng = np.random.default_rng((self.arguments.seed, epoch))
        return self.train.batches(self.arguments.tokens_per_batch, rng)

    def collate(self, batch: np.ndarray, step: int) -> Tensors:
        """Return the tensors of a batch, its rows in random order."""
        tensors = self.train(batch)
        if self.weights is not None:
            tensors["weights"] = torch.from_numpy(self.weights[batch])
        if self.label_map is not None:
            tensors["labels"] = torch.from_numpy(self.label_map.target(tensors["labels"].numpy()))
        # CoSENT compares rows within a block, which must not hold those of one group alone.
        order = np.random.default_rng((self.arguments.seed, 1, step)).permutation(len(tensors["labels"]))
        return tensors | {name: tensors[name][order] for name in OF_ROWS if name in tensors}

    @torch.no_grad()
    def outcomes(self, model: Objective) -> np.ndarray:
        """Return the cosine of each validation row, or whether it came out right."""
        model.eval()
        rows = self.data.validation
        members = torch.from_numpy(rows.members.astype(np.int64)).to(model.device)
        vectors = self._vectors(model, self.validation, np.arange(len(rows.sentences)))
        return model.outcomes(vectors, members, rows.labels)

    def figures(self, outcomes: np.ndarray) -> dict[str, float]:
        """Return the figures of these outcomes of the validation rows."""
        return self.model.figures(outcomes, self.data.validation.labels)

    def evaluate(self, model: Objective) -> dict[str, float]:
        """Return the figures on the validation rows."""
        return self.figures(self.outcomes(model)) | self.baselines

    @property
    def headline(self) -> str:
        """The figure that decides which weights are kept."""
        return self.model.headline

    @property
    def validation_labels(self) -> np.ndarray:
        """The labels of the validation rows."""
        return self.data.validation.labels

    @torch.no_grad()
    def _vectors(self, model: Objective, collator: RowCollator, sentences: np.ndarray) -> torch.Tensor:
        """Embed sentences, the longest first, and return their vectors in the given order."""
        order = np.argsort(-collator.lengths(sentences), kind="stable")
        vectors = torch.empty(len(order), model.surrogate.config.hidden_size, device=model.device)
        start, hidden = 0, None if PartialState().is_main_process else True
        with tqdm(total=len(order), desc="evaluate", unit="sentence", disable=hidden, leave=False) as bar:
            while start < len(order):
                longest = int(collator.lengths(sentences[order[start : start + 1]])[0])
                batch = order[start : start + max(1, TOKENS_PER_EVALUATION_BATCH // longest)]
                tensors = collator.encode(sentences[batch])
                inputs = (tensors[name].to(model.device) for name in ("input_ids", "attention_mask"))
                vectors[batch] = model.embed(*inputs)
                start += len(batch)
                bar.update(len(batch))
        return vectors


def _marks(arguments: SurrogateArguments, tokenizer: TokenizersBackend) -> Marks:
    """Return what stands around a sentence: the special tokens, and the prompt of the start; nothing if static."""
    if arguments.kind == STATIC:
        return Marks((), (), tokenizer.pad_token_id or 0)
    marks = Marks.of(tokenizer)
    prompt = read_text_settings(arguments.start).prompt if arguments.start else ""
    ids = tokenizer(prompt.rstrip(), add_special_tokens=False)["input_ids"]  # a space begins the next word
    return replace(marks, before=(*marks.before, *ids))


def baseline_figures(data: SurrogateData) -> dict[str, float]:
    """Return the figures of two baselines on the validation pairs: the training mean, and TF-IDF."""
    labels = data.validation.labels.astype(np.float64)
    if not np.isfinite(labels).all() or np.ptp(labels) == 0:
        raise UserError(
            f"expected different scores in the validation split, its {len(labels)} allow no correlation; "
            "add pairs with other scores"
        )
    mean = data.train.labels.mean(dtype=np.float64)
    figures = {"l2_of_the_mean": float(((mean - labels) ** 2).mean())}
    if data.tfidf is not None and np.ptp(data.tfidf) > 0:
        figures["spearman_tfidf"] = float(spearmanr(data.tfidf, labels).statistic)
    return figures
