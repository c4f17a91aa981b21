"""Train a cross surrogate, which reads both sentences of a pair at once."""

import numpy as np
import torch
from accelerate import PartialState
from tqdm import tqdm
from transformers import PreTrainedModel, TokenizersBackend

from ctxsim_hf.context_models.collators import Tensors
from ctxsim_hf.encoder.modeling_cross_surrogate import CrossSurrogateModel
from ctxsim_hf.surrogate.labelled_rows import LabelledRows
from ctxsim_hf.surrogate.labels import LabelMap
from ctxsim_hf.surrogate.pair_data import SurrogateData
from ctxsim_hf.surrogate.siamese_task import baseline_figures
from ctxsim_hf.surrogate.surrogate_losses import agreement
from ctxsim_hf.surrogate.surrogate_start import starting_model
from ctxsim_hf.surrogate.training_arguments import SurrogateArguments
from ctxsim_hf.text.marks import PairMarks
from ctxsim_hf.train.batches import length_batches

TOKENS_PER_EVALUATION_BATCH = 8192


class CrossTask:
    """The training task of a cross surrogate: what the loop needs to know."""

    headline = "spearman"  # the figure that decides which weights are kept

    def __init__(self, arguments: SurrogateArguments, tokenizer: TokenizersBackend, data: SurrogateData) -> None:
        self.arguments, self.data, self.marks = arguments, data, PairMarks.of(tokenizer)
        self.label_map = LabelMap.fit(str(arguments.labels), data.train.labels)
        self.targets = self.label_map.target(data.train.labels)
        longest = 2 * arguments.max_sentence_tokens + self.marks.size
        self.model = starting_model(CrossSurrogateModel, arguments, tokenizer, longest, data.train.sentences)
        if self.label_map != LabelMap():
            self.model.config.score_range = [self.label_map.low, self.label_map.high]
        self.baselines = baseline_figures(data)

    def _lengths(self, rows: LabelledRows, members: np.ndarray) -> np.ndarray:
        """Return the number of tokens of each of these pairs."""
        starts = rows.sentences.sentence_starts
        tokens = np.minimum(starts[members + 1] - starts[members], self.arguments.max_sentence_tokens)
        return tokens.sum(1) + self.marks.size

    def batches(self, epoch: int) -> list[np.ndarray]:
        """Return the batches of an epoch, pairs of similar length together."""
        rng = np.random.default_rng((self.arguments.seed, epoch))
        lengths = self._lengths(self.data.train, self.data.train.members)
        return length_batches(lengths, np.zeros_like(lengths), self.arguments.tokens_per_batch, rng)

    def collate(self, batch: np.ndarray, step: int) -> Tensors:
        """Return the tensors of a batch."""
        return self._encode(self.data.train, batch) | {"labels": torch.from_numpy(self.targets[batch])}

    def _encode(self, rows: LabelledRows, batch: np.ndarray) -> Tensors:
        lengths = self._lengths(rows, rows.members[batch])
        ids = np.full((len(batch), lengths.max()), self.marks.pad, np.int64)
        types = np.zeros_like(ids)
        starts, longest = rows.sentences.sentence_starts, self.arguments.max_sentence_tokens
        for place, pair in enumerate(rows.members[batch]):
            first, second = (
                rows.sentences.tokens[starts[s] : min(starts[s + 1], starts[s] + longest)].tolist() for s in pair
            )
            ids[place, : lengths[place]], types[place, : lengths[place]] = self.marks.frame(first, second)
        mask = np.arange(ids.shape[1]) < lengths[:, None]
        arrays = {"input_ids": ids, "attention_mask": mask.astype(np.int64)}
        if self.marks.second_type:
            arrays["token_type_ids"] = types
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def evaluate(self, model: PreTrainedModel) -> dict[str, float]:
        """Return the figures on the validation pairs."""
        return self.figures(self.outcomes(model)) | self.baselines

    def figures(self, outcomes: np.ndarray) -> dict[str, float]:
        """Return the figures of these scores of the validation pairs."""
        return agreement(outcomes, self.validation_labels, self.label_map)

    @property
    def validation_labels(self) -> np.ndarray:
        """The labels of the validation pairs."""
        return self.data.validation.labels

    @torch.no_grad()
    def outcomes(self, model: PreTrainedModel) -> np.ndarray:
        """Return the score of each validation pair."""
        model.eval()
        rows = self.data.validation
        lengths = self._lengths(rows, rows.members)
        scores, rng = np.empty(len(rows)), np.random.default_rng(0)
        batches = length_batches(lengths, np.zeros_like(lengths), TOKENS_PER_EVALUATION_BATCH, rng)
        hidden = None if PartialState().is_main_process else True
        for batch in tqdm(batches, "evaluate", unit="batch", disable=hidden, leave=False):
            tensors = {name: tensor.to(model.device) for name, tensor in self._encode(rows, batch).items()}
            scores[batch] = model(**tensors).logits[:, 0].cpu().double().numpy()
        return scores
