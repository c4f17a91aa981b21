"""A table of token vectors, and the tokens' letters -> a RoBERTa that starts as their weighted mean.

A sentence is known by the mean of its tokens' vectors, partly whitened, each with a weight of its own. Beside these,
in dimensions of their own, stand their letters, as random directions that tokens share as far as they share n-grams:
what a token is, beside what it is found with, so that two sentences are also alike by their words.

The LayerNorms of RoBERTa scale every state to one length, so a token cannot weigh little by having a short vector.
Instead two extra dimensions, the rest, take with opposite signs what a vector lacks in length. All tokens then have
one length and mean 0, LayerNorm leaves them unchanged, and the last LayerNorm sets the rest to 0. The layers start by
adding nothing and learn to add something.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_array, diags_array
from transformers import RobertaModel

from ctxsim_hf.surrogate.word_table import TokenTable
from ctxsim_hf.text.bags import bag_matrix, unit_rows
from ctxsim_hf.text.letter_ngrams import BOUNDARY, letter_ngrams
from ctxsim_hf.text.letters import MIN_NGRAM_IDF

REST = 2  # the last dimensions
LETTERS_IN = 4  # one dimension in so many at least is the letters', and what narrow vectors leave free
WORD_START = "▁"  # sentencepiece's
CONTINUES = "##"  # WordPiece's
TOKENS_PER_SENTENCE = 20  # about: a token that is in most sentences says nothing


@dataclass(frozen=True)
class TableSettings:
    """How a table becomes the vectors that a surrogate starts from."""

    whitening: float | None = None  # from 0, as they are, to 1, equal variance in every direction; None: the table's
    letters: float = 0.6  # strength of the letters beside the vectors: with more, neighbours in a text are less alike


DEFAULT_TABLE = TableSettings()


def token_vectors(
    table: TokenTable,
    size: int,
    tokens: Sequence[str],
    weightless: Sequence[int],
    settings: TableSettings = DEFAULT_TABLE,
) -> torch.Tensor:
    """Return for every token its weighted vector, on the principal axes that there is room for, and its letters; zeros
    if it is one of `weightless`: (tokens, size). A sentence is known by the sum over its tokens."""
    power = table.whitening if settings.whitening is None else settings.whitening
    vectors = _whiten(table, power)[:, : size - size // LETTERS_IN]
    letters = _letters(tokens, table.frequencies, size - vectors.shape[1])
    parts = [_evenly_long(vectors, table.frequencies), settings.letters * _evenly_long(letters, table.frequencies)]
    known = torch.cat(parts, 1)
    known[weightless] = 0
    return known


def token_states(
    table: TokenTable,
    hidden_size: int,
    tokens: Sequence[str],
    weightless: Sequence[int],
    settings: TableSettings = DEFAULT_TABLE,
) -> torch.Tensor:
    """Return a state for every token that LayerNorm leaves as it is, of length sqrt(hidden_size) and mean 0. The
    dimensions before the rest hold its `token_vectors`."""
    size = hidden_size - 1 - REST  # one dimension goes to the mean being 0
    known = token_vectors(table, size, tokens, weightless, settings)
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

    An n-gram weighs its own idf, as in letters.py. Tokens in angle brackets, bytes and marks, have no letters.
    """
    marks_continuations = any(token.startswith(CONTINUES) for token in tokens)
    held, _ = bag_matrix([letter_ngrams(_bounded(token, marks_continuations)) for token in tokens])
    in_sentences = (frequencies * TOKENS_PER_SENTENCE).clamp(max=1)
    ngram_idf = np.log(1 / (held.T @ in_sentences.numpy()).clip(1e-9, 1)).clip(min=MIN_NGRAM_IDF)
    letters = unit_rows(csr_array(held @ diags_array(ngram_idf)))
    directions = np.random.default_rng(0).standard_normal((letters.shape[1], size))
    idf = -in_sentences.log()
    idf[[place for place, token in enumerate(tokens) if token.startswith("<") and token.endswith(">")]] = 0
    return idf[:, None] * torch.from_numpy(letters @ directions)


def _bounded(token: str, marks_continuations: bool) -> str:
    """Return a token with spaces for the boundaries of words, which a vocabulary marks at the start or inside."""
    if marks_continuations:
        return token.removeprefix(CONTINUES) + BOUNDARY if token.startswith(CONTINUES) else BOUNDARY + token + BOUNDARY
    return token.replace(WORD_START, BOUNDARY) + BOUNDARY


def _evenly_long(vectors: torch.Tensor, frequencies: torch.Tensor) -> torch.Tensor:
    """Scale vectors to a mean squared length of 1 over the tokens of a text."""
    return vectors / (frequencies @ (vectors**2).sum(1)).sqrt()


def _whiten(table: TokenTable, power: float) -> torch.Tensor:
    """Return weighted token vectors on their principal axes, the strongest first, evened out by a power. A token
    counts as often as it occurs, since this is about sentences: sums of tokens."""
    shares = (table.frequencies * table.weights**2)[:, None]
    vectors = table.vectors - (shares * table.vectors).sum(0) / shares.sum()
    strengths, axes = torch.linalg.eigh((shares * vectors).T @ vectors / shares.sum())  # ascending
    axes = axes.flip(1)
    axes *= axes.gather(0, axes.abs().argmax(0, keepdim=True)).sign()  # the sign of an axis is arbitrary
    scales = strengths.flip(0).clamp(min=1e-12) ** (-power / 2)
    return table.weights[:, None] * (vectors @ axes) * scales


def _zero_mean_basis(size: int) -> torch.Tensor:
    """Return orthonormal rows of mean 0, those of Helmert: (size - 1, size)."""
    rows = torch.tril(torch.ones(size - 1, size, dtype=torch.float64))
    steps = torch.arange(1, size, dtype=torch.float64)
    rows[torch.arange(size - 1), torch.arange(1, size)] = -steps
    return rows / (steps * (steps + 1)).sqrt()[:, None]
