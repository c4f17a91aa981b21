"""What a surrogate is trained for: sentence vectors -> a loss.

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

SLICES = 4  # of a batch, by length: each is padded to its own longest sentence


@dataclass
class ObjectiveOutput(ModelOutput):
    loss: torch.Tensor | None = None


class Objective(nn.Module):
    """A surrogate and what its vectors are trained for. What is saved is the surrogate."""

    def __init__(self, surrogate: SurrogateModel) -> None:
        super().__init__()
        self.surrogate = surrogate

    @property
    def device(self) -> torch.device:
        return torch.device(self.surrogate.device)

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        members: torch.Tensor,
        labels: torch.Tensor,
        weights: torch.Tensor | None = None,
    ) -> ObjectiveOutput:
        """
        Args:
            input_ids, attention_mask (`(sentences, tokens)`): Each sentence once, the longest first.
            members (`(rows, 2 or 3)`): Places of a row's sentences.
            labels (`(rows,)`): Of the rows; triplets do not look at them.
            weights (`(rows,)`, *optional*): Of the rows. None weighs all alike.
        """
        vectors = self.embed(input_ids, attention_mask)
        with torch.autocast(vectors.device.type, enabled=False):  # labels differ by less than half precision can tell
            return ObjectiveOutput(loss=self.loss(vectors.float(), members, labels, weights))

    def embed(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Sentences, the longest first -> (sentences, hidden)."""
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
        raise NotImplementedError

    def figures(self, vectors: torch.Tensor, members: torch.Tensor, labels: np.ndarray) -> dict[str, float]:
        """On rows with labels as the data has them."""
        raise NotImplementedError

    def save_pretrained(self, folder: Path, state_dict: dict[str, torch.Tensor]) -> None:
        prefix = "surrogate."
        own = {name.removeprefix(prefix): value for name, value in state_dict.items() if name.startswith(prefix)}
        self.surrogate.save_pretrained(folder, state_dict=own)


class SimilarityObjective(Objective):
    def __init__(self, surrogate: SurrogateModel, loss: str, label_map: LabelMap) -> None:
        super().__init__(surrogate)
        self.kind, self.label_map = loss, label_map

    def loss(
        self, vectors: torch.Tensor, members: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor | None
    ) -> torch.Tensor:
        given = () if weights is None else (weights,)
        return LOSSES[self.kind](cosines(vectors, members), labels, *given)

    def figures(self, vectors: torch.Tensor, members: torch.Tensor, labels: np.ndarray) -> dict[str, float]:
        return agreement(cosines(vectors, members).cpu().double().numpy(), labels, self.label_map)


class ClassificationObjective(Objective):
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

    def figures(self, vectors: torch.Tensor, members: torch.Tensor, labels: np.ndarray) -> dict[str, float]:
        found = self._logits(vectors, members).argmax(1).cpu().numpy()
        return {"accuracy": float((found == labels).mean())}


class TripletObjective(Objective):
    def __init__(self, surrogate: SurrogateModel, margin: float) -> None:
        super().__init__(surrogate)
        self.margin = margin

    def loss(
        self, vectors: torch.Tensor, members: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor | None
    ) -> torch.Tensor:
        # Of length 1, since similarity is a cosine: longer vectors would reach a margin and teach nothing.
        anchor, positive, negative = (functional.normalize(vectors[places]) for places in members.T)
        return functional.triplet_margin_loss(anchor, positive, negative, margin=self.margin)

    def figures(self, vectors: torch.Tensor, members: torch.Tensor, labels: np.ndarray) -> dict[str, float]:
        """By cosine, which is what a surrogate's similarity is."""
        nearer = cosines(vectors, members[:, [0, 1]]) > cosines(vectors, members[:, [0, 2]])
        return {"accuracy": float(nearer.cpu().double().mean())}
