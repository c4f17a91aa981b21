"""Initialise a RoBERTa as the weighted mean of a light generator's token vectors and the tokens' letters.

A light generator represents a sentence by the weighted mean of its tokens' vectors. Further dimensions hold the
letters of a token: random directions, which tokens share as far as they share letter n-grams. So two sentences are
alike both by what their tokens occur with and by how they are spelled.

The LayerNorms of RoBERTa scale every state to one length, so a token cannot weigh little by having a short vector.
Instead two extra dimensions, the rest, take with opposite signs what a vector lacks in length. All tokens then have
one length and mean 0, LayerNorm leaves them unchanged, and the last LayerNorm sets the rest to 0. The layers start by
adding nothing and learn to add something.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from transformers import RobertaModel

from ctxsim_hf.context_models.light.modeling import LightContextGeneratorModel
from ctxsim_hf.text.letters import BOUNDARY, letter_vectors

REST = 2  # the last dimensions
# From 0, vectors as they are, to 1, equal variance in every direction: 0.5 agreed best with the scores of Origin,
# which are whitened over a few hundred sentences.
WHITENING = 0.5
LETTERS_IN = 4  # at least one dimension in so many is for letters, and all that a narrow generator leaves free
LETTERS = 0.6  # strength of the letters relative to the vectors: with more, neighbours in a text are less alike
WORD_START = "▁"  # sentencepiece's mark
TOKENS_PER_SENTENCE = 20  # about; a token that occurs in most sentences has an idf of 0


@torch.no_grad()
def token_states(
    generator: LightContextGeneratorModel, hidden_size: int, tokens: Sequence[str], weightless: Sequence[int]
) -> torch.Tensor:
    """Return a state for every token, of length sqrt(hidden_size) and mean 0, which LayerNorm leaves unchanged.

    Args:
        generator (`LightContextGeneratorModel`): Its token vectors and weights are used.
        hidden_size (`int`): Width of the RoBERTa.
        tokens (`Sequence[str]`): The vocabulary.
        weightless (`Sequence[int]`): Tokens that start without a vector and letters, such as marks.
    """
    frequencies = torch.softmax(generator.output_bias.double(), 0)
    size = hidden_size - 1 - REST  # one dimension goes to the mean being 0
    vectors = _whiten(generator, frequencies)[:, : size - size // LETTERS_IN]
    letters = _letters(tokens, frequencies, size - vectors.shape[1])
    known = torch.cat([_evenly_long(vectors, frequencies), LETTERS * _evenly_long(letters, frequencies)], 1)
    known[weightless] = 0
    states = known.new_zeros(len(known), hidden_size)
    states[:, :-REST] = known @ _zero_mean_basis(hidden_size - REST)
    squares = (states**2).sum(1)
    rest = ((squares.max() - squares) / REST).sqrt()
    states[:, -2], states[:, -1] = rest, -rest
    return states * math.sqrt(hidden_size / squares.max())


@torch.no_grad()
def start_as_mean(roberta: RobertaModel) -> None:
    """Make a RoBERTa pass its token states on unchanged, except for the rest, which the last layer sets to 0."""
    embeddings = roberta.embeddings
    for part in (embeddings.position_embeddings, embeddings.token_type_embeddings):
        part.weight.zero_()
    for layer in roberta.encoder.layer:
        for part in (layer.attention.output.dense, layer.output.dense):
            part.weight.zero_()
    roberta.encoder.layer[-1].output.LayerNorm.weight[-REST:] = 0


def _letters(tokens: Sequence[str], frequencies: torch.Tensor, size: int) -> torch.Tensor:
    """Project the letter n-grams of each token on random directions, scaled by its idf: (tokens, size).

    Tokens in angle brackets, bytes and marks, have no letters.
    """
    letters = letter_vectors([token.replace(WORD_START, BOUNDARY) + BOUNDARY for token in tokens])
    directions = np.random.default_rng(0).standard_normal((letters.shape[1], size))
    idf = -(frequencies * TOKENS_PER_SENTENCE).log().clamp(max=0)
    idf[[place for place, token in enumerate(tokens) if token.startswith("<") and token.endswith(">")]] = 0
    return idf[:, None] * torch.from_numpy(letters @ directions)


def _evenly_long(vectors: torch.Tensor, frequencies: torch.Tensor) -> torch.Tensor:
    """Scale vectors to a mean squared length of 1 over the tokens of a text."""
    return vectors / (frequencies @ (vectors**2).sum(1)).sqrt()


def _whiten(generator: LightContextGeneratorModel, frequencies: torch.Tensor) -> torch.Tensor:
    """Return weighted token vectors on their principal axes, strongest first, partly whitened.

    A token counts as often as it occurs, since it is sentences, sums of tokens, that are to be whitened.
    """
    weights = torch.sigmoid(generator.token_weight_logits.double())
    vectors = generator.input_embeddings.weight.double()
    shares = (frequencies * weights**2)[:, None]
    vectors = vectors - (shares * vectors).sum(0) / shares.sum()
    strengths, axes = torch.linalg.eigh((shares * vectors).T @ vectors / shares.sum())  # ascending
    axes = axes.flip(1)
    axes *= axes.gather(0, axes.abs().argmax(0, keepdim=True)).sign()  # the sign of an axis is arbitrary
    scales = strengths.flip(0).clamp(min=1e-12) ** (-WHITENING / 2)
    return weights[:, None] * (vectors @ axes) * scales


def _zero_mean_basis(size: int) -> torch.Tensor:
    """Return orthonormal rows of mean 0, those of Helmert: (size - 1, size)."""
    rows = torch.tril(torch.ones(size - 1, size, dtype=torch.float64))
    steps = torch.arange(1, size, dtype=torch.float64)
    rows[torch.arange(size - 1), torch.arange(1, size)] = -steps
    return rows / (steps * (steps + 1)).sqrt()[:, None]
