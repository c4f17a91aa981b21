"""The states of tokens -> the vector of their sentence."""

import torch


def mean_pooling(token_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
    """Return the mean over the real tokens of each sentence: (sentences, tokens, hidden) -> (sentences, hidden).

    A sentence whose mask is all zero gets the zero vector.
    """
    mask = attention_mask.to(token_states.dtype).unsqueeze(-1)
    return (token_states * mask).sum(1) / mask.sum(1).clamp(min=1)


def cls_pooling(token_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
    """Return the state of each sentence's first real token: (sentences, tokens, hidden) -> (sentences, hidden)."""
    first = attention_mask.to(torch.int64).argmax(1)[:, None, None]
    return token_states.gather(1, first.expand(-1, 1, token_states.shape[2]))[:, 0]


def max_pooling(token_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
    """Return the largest number of each dimension over the real tokens: (sentences, tokens, hidden) -> (sentences,
    hidden). A sentence whose mask is all zero gets the zero vector."""
    unreal = (attention_mask == 0).unsqueeze(-1)
    largest = token_states.masked_fill(unreal, -torch.inf).amax(1)
    return largest.masked_fill(unreal.all(1), 0)


POOLINGS = {"mean": mean_pooling, "cls": cls_pooling, "max": max_pooling}
