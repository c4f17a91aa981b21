"""Rows of token ids that begin alike -> states of a causal language model, with the common beginning computed once.

The beginning's keys and values are computed for one row and shared by all; the rest of the rows goes through the model
in batches of like length, so that little of it is padding. Nothing is projected to the vocabulary here.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache, PreTrainedModel

TOKENS_PER_BATCH = {"cpu": 1024}  # padding included: on a CPU small batches stay in its caches
TOKENS_PER_BATCH_ELSEWHERE = 16_384


@dataclass(frozen=True)
class Batch:
    rows: np.ndarray  # places among the rows that were given
    states: torch.Tensor  # (rows, 1 + tokens, hidden): after the beginning (zeros if none), each token of the rest
    ids: torch.Tensor  # (rows, tokens): the rest, padded on the right
    lengths: torch.Tensor  # (rows,): real tokens of the rest


def common_prefix(rows: Sequence[list[int]]) -> int:
    """Return how many tokens all rows begin with alike; at least one token of each row is left over."""
    first, last = min(rows), max(rows)  # in their order, so all others lie between these two, and begin as they do
    limit = min(map(len, rows)) - 1
    for place, (one, other) in enumerate(zip(first, last, strict=False)):
        if one != other or place >= limit:
            return min(place, limit)
    return limit


class PrefixBatches:
    """
    Args:
        model (`PreTrainedModel`): A causal language model without its head, such as a LlamaModel.
        layer (`int`): Whose states to return, -1 for the last.
    """

    def __init__(self, model: PreTrainedModel, layer: int = -1) -> None:
        self.model, self.layer = model, layer
        self.tokens_per_batch = TOKENS_PER_BATCH.get(model.device.type, TOKENS_PER_BATCH_ELSEWHERE)

    @torch.inference_mode()
    def __call__(
        self, rows: Sequence[list[int]], prefix: int | None = None, advance: Callable[[int], Any] = lambda n: None
    ) -> Iterator[Batch]:
        """Yield batches of rows, the longest first.

        Args:
            rows (`Sequence[list[int]]`): Token ids, none empty.
            prefix (`int`, *optional*): Tokens that all rows are known to share. None finds out.
            advance: Told how many more rows are done.
        """
        prefix = common_prefix(rows) if prefix is None else prefix
        first, cache = self._beginning(rows[0][:prefix])
        lengths = np.array([len(row) - prefix for row in rows])
        order = np.argsort(-lengths, kind="stable")
        start = 0
        while start < len(order):
            number = max(1, self.tokens_per_batch // int(lengths[order[start]]))
            places = order[start : start + number]
            start += number
            yield self._batch([rows[place][prefix:] for place in places], places, prefix, first, cache)
            advance(len(places))

    def _beginning(self, ids: list[int]) -> tuple[torch.Tensor | None, DynamicCache | None]:
        if not ids:
            return None, None
        cache = DynamicCache(config=self.model.config)
        states = self._states(torch.tensor([ids]), past_key_values=cache)
        return states[:, -1:], cache

    def _batch(
        self,
        rests: list[list[int]],
        places: np.ndarray,
        prefix: int,
        first: torch.Tensor | None,
        cache: DynamicCache | None,
    ) -> Batch:
        lengths = torch.tensor([len(rest) for rest in rests])
        ids = torch.zeros(len(rests), int(lengths.max()), dtype=torch.long)
        for row, rest in enumerate(rests):
            ids[row, : len(rest)] = torch.tensor(rest)
        mask = torch.arange(prefix + ids.shape[1]) < (prefix + lengths)[:, None]
        more: dict[str, Any] = {"attention_mask": mask.long()}
        if cache is not None:
            own = copy.deepcopy(cache)  # the model appends to it
            own.batch_repeat_interleave(len(rests))
            more["past_key_values"] = own
        states = self._states(ids, **more)
        before = (
            states.new_zeros(len(rests), 1, states.shape[2]) if first is None else first.expand(len(rests), -1, -1)
        )
        return Batch(places, torch.cat([before, states], dim=1), ids, lengths)

    def _states(self, ids: torch.Tensor, **more: Any) -> torch.Tensor:
        device = self.model.device
        more = {name: value.to(device) if isinstance(value, torch.Tensor) else value for name, value in more.items()}
        last = self.layer == -1
        outputs = self.model(input_ids=ids.to(device), use_cache=True, output_hidden_states=not last, **more)
        states: torch.Tensor = outputs.last_hidden_state if last else outputs.hidden_states[self.layer]
        return states
