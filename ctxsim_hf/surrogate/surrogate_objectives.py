"""Turn sentence vectors into a loss: the objectives that a surrogate is trained for.

| objective | rows | loss |
|---|---|---|
| similarity | pairs with a score | on the cosine: see surrogate_losses.py |
| classification | pairs with a class | cross entropy of a layer over u, v, abs(u - v); the layer is not kept |
| triplet | anchor, positive, negative | max(0, dist(a, p) - dist(a, n) + margin), between unit vectors |
"""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from transformers.utils import ModelOutput

from ctxsim_hf.encoder.modeling_surrogate import SurrogateModel
from ctxsim_hf.surrogate.labels import LabelMap
from ctxsim_hf.surrogate.surrogate_losses import LOSSES, agreement, cosines

SLICES = 4  # parts of a batch by length, each padded to its own longest sentence


@dataclass
class ObjectiveOutput(ModelOutput):
    """The output of an objective."""

    loss: torch.Tensor | None = None


class Objective(nn.Module):
    """A surrogate and the loss on its vectors. Only the surrogate is saved."""

    headline = "accuracy"  # the figure that says how good the surrogate is

    def __init__(self, surrogate: SurrogateModel) -> None:
        super().__init__()
        self.surrogate = surrogate

    @property
    def device(self) -> torch.device:
        """The device of the surrogate."""
        return torch.device(self.surrogate.device)

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        members: torch.Tensor,
        labels: torch.Tensor,
        weights: torch.Tensor | None = None,
    ) -> ObjectiveOutput:
        """Embed the sentences and return the loss.

        Args:
            input_ids, attention_mask (`(sentences, tokens)`): Each sentence once, the longest first.
            members (`(rows, 2 or 3)`): Places of the sentences of each row.
            labels (`(rows,)`): Labels of the rows; triplets ignore them.
            weights (`(rows,)`, *optional*): Weights of the rows. None weighs all alike.
        """
        vectors = self.embed(input_ids, attention_mask)
        with torch.autocast(vectors.device.type, enabled=False):  # half precision cannot tell such labels apart
            return ObjectiveOutput(loss=self.loss(vectors.float(), members, labels, weights))

    def embed(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Return the vectors (sentences, hidden) of sentences, the longest first."""
        longest = attention_mask.sum(1).clamp(min=1).tolist()
        ends = [len(longest) * number // SLICES for number in range(SLICES + 1)]
        return torch.cat(
            [
                self.surrogate(
                    input_ids[start:end, : longest[start]], attention_mask[start:end, : longest[start]]
                ).sentence_embedding
                for start, end in pairwise(ends)
                if start < end
            ]
        )

    def loss(
        self, vectors: torch.Tensor, members: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor | None
    ) -> torch.Tensor:
        """Return the loss of a batch of rows."""
        raise NotImplementedError

    def outcomes(self, vectors: torch.Tensor, members: torch.Tensor, labels: np.ndarray) -> np.ndarray:
        """Return the cosine of each row, or whether it is right. Labels are on the scale of the data."""
        raise NotImplementedError

    def figures(self, outcomes: np.ndarray, labels: np.ndarray) -> dict[str, float]:
        """Return figures of the outcomes of rows: by default the share that is right."""
        return {self.headline: float(outcomes.mean())}

    def save_pretrained(self, folder: Path, state_dict: dict[str, torch.Tensor]) -> None:
        """Save the surrogate, without what only training needs."""
        prefix = "surrogate."
        own = {name.removeprefix(prefix): value for name, value in state_dict.items() if name.startswith(prefix)}
        self.surrogate.save_pretrained(folder, state_dict=own)


class SimilarityObjective(Objective):
    """Train the cosine of a pair to be its score."""

    headline = "spearman"

    def __init__(self, surrogate: SurrogateModel, loss: str, label_map: LabelMap) -> None:
        super().__init__(surrogate)
        self.loss_name, self.label_map = loss, label_map

    def loss(
        self, vectors: torch.Tensor, members: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor | None
    ) -> torch.Tensor:
        given = () if weights is None else (weights,)
        return LOSSES[self.loss_name](cosines(vectors, members), labels, *given)

    def outcomes(self, vectors: torch.Tensor, members: torch.Tensor, labels: np.ndarray) -> np.ndarray:
        return cosines(vectors, members).cpu().double().numpy()

    def figures(self, outcomes: np.ndarray, labels: np.ndarray) -> dict[str, float]:
        return agreement(outcomes, labels, self.label_map)


class ClassificationObjective(Objective):
    """Train a classifier of pairs over their vectors."""

    def __init__(self, surrogate: SurrogateModel, num_classes: int) -> None:
        super().__init__(surrogate)
        self.classifier = nn.Linear(3 * surrogate.config.hidden_size, num_classes)

    def _logits(self, vectors: torch.Tensor, members: torch.Tensor) -> torch.Tensor:
        first, second = vectors[members[:, 0]], vectors[members[:, 1]]
        return torch.as_tensor(self.classifier(torch.cat([first, second, (first - second).abs()], 1)))

    def loss(
        self, vectors: torch.Tensor, members: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor | None
    ) -> torch.Tensor:
        return functional.cross_entropy(self._logits(vectors, members), labels.long())

    def outcomes(self, vectors: torch.Tensor, members: torch.Tensor, labels: np.ndarray) -> np.ndarray:
        found: np.ndarray = self._logits(vectors, members).argmax(1).cpu().numpy() == labels
        return found


class TripletObjective(Objective):
    """Train the anchor of a triplet to be nearer to the positive than to the negative."""

    def __init__(self, surrogate: SurrogateModel, margin: float) -> None:
        super().__init__(surrogate)
        self.margin = margin

    def loss(
        self, vectors: torch.Tensor, members: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor | None
    ) -> torch.Tensor:
        # Unit vectors, since similarity is a cosine: long vectors would exceed the margin and teach nothing.
        anchor, positive, negative = (functional.normalize(vectors[places]) for places in members.T)
        return functional.triplet_margin_loss(anchor, positive, negative, margin=self.margin)

    def outcomes(self, vectors: torch.Tensor, members: torch.Tensor, labels: np.ndarray) -> np.ndarray:
        """Return whether the positive is nearer by cosine, the similarity of a surrogate."""
        return (cosines(vectors, members[:, [0, 1]]) > cosines(vectors, members[:, [0, 2]])).cpu().numpy()
