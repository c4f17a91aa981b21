"""Turn sentence vectors into a loss: the objectives that a surrogate is trained for.

| objective | rows | loss |
|---|---|---|
| similarity | pairs with a score | on the cosine: see surrogate_losses.py |
| triplet | anchor, positive, negative | max(0, dist(a, p) - dist(a, n) + margin), between unit vectors |
| contrast | anchor, positive, negative | cross entropy of the positive among all that the batch holds, by cosines |
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
SCALE = 20.0  # of cosines before the softmax, as sentence-transformers has it


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


class ContrastObjective(TripletObjective):
    """Train the anchor of a triplet to be nearer to its positive than to all positives and negatives of a batch.

    A classifier of pairs, as SBERT has one over u, v and abs(u - v), would have to be learned first, and meanwhile
    harms an encoder that knows more than these labels say: docs/experiments.md.
    """

    def __init__(self, surrogate: SurrogateModel) -> None:
        super().__init__(surrogate, margin=0.0)

    def loss(
        self, vectors: torch.Tensor, members: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor | None
    ) -> torch.Tensor:
        anchors, candidates = members[:, 0], members[:, 1:].T.flatten()  # all positives, then all negatives
        own = torch.arange(len(anchors), device=vectors.device)
        # Another positive of the same anchor is no mistake, nor is the same sentence in another row.
        siblings = anchors[:, None] == anchors
        right = torch.cat([siblings, torch.zeros_like(siblings)], 1) | (candidates[own, None] == candidates)
        right[own, own] = False
        units = functional.normalize(vectors)
        logits = SCALE * units[anchors] @ units[candidates].T
        return functional.cross_entropy(logits.masked_fill(right, -torch.inf), own)
