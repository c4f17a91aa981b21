"""Checks of input tensors, so that a wrong shape or range does not become a wrong number or an error of torch."""

import torch


def check_tokens(input_ids: torch.Tensor, attention_mask: torch.Tensor) -> None:
    """Raise `ValueError` unless ids and mask are both (sentences, tokens)."""
    if input_ids.dim() != 2:
        raise ValueError(f"`input_ids` must be (sentences, tokens), got the shape {tuple(input_ids.shape)}.")
    if attention_mask.shape != input_ids.shape:
        raise ValueError(
            f"`attention_mask` must have the shape of `input_ids`, {tuple(input_ids.shape)}, "
            f"got {tuple(attention_mask.shape)}."
        )


def check_index(num_sentences: int, **indexes: torch.Tensor) -> None:
    """Raise `ValueError` for indices of different batch sizes or out of range.

    The range is only checked on a CPU: on a GPU it would force a synchronisation.
    """
    for name, index in indexes.items():
        is_side = name in ("left_index", "right_index")
        if is_side and index.dim() != 2:
            raise ValueError(f"`{name}` must be (batch, sentences of a side), got the shape {tuple(index.shape)}.")
        if index.dim() not in (1, 2):
            raise ValueError(f"`{name}` must be (batch,) or (batch, candidates), got the shape {tuple(index.shape)}.")
        if index.device.type != "cpu" or index.numel() == 0:
            continue
        lowest = -1 if is_side else 0
        low, high = (int(value) for value in index.aminmax())
        if low < lowest or high >= num_sentences:
            raise ValueError(f"`{name}` must lie from {lowest} to {num_sentences - 1}, got {low} to {high}.")
    batch_sizes = {name: len(index) for name, index in indexes.items()}
    if len(set(batch_sizes.values())) > 1:  # torch would broadcast some of them
        raise ValueError(f"The indices must have the same batch size, got {batch_sizes}.")


def check_vocabulary(input_ids: torch.Tensor, vocab_size: int) -> None:
    """Raise `ValueError` for an id outside the vocabulary. Only checked on a CPU, as in `check_index`."""
    if input_ids.device.type != "cpu" or input_ids.numel() == 0:
        return
    low, high = (int(value) for value in input_ids.aminmax())
    if low < 0 or high >= vocab_size:
        raise ValueError(
            f"Token ids must lie from 0 to vocab_size - 1 = {vocab_size - 1}, got ids from {low} to {high}. "
            "Was the text encoded with another tokenizer than the model's?"
        )
