"""Chunks -> a light generator without a single step: neighbour co-occurrence, PPMI, truncated SVD.

Of which tokens does the sentence next door speak? With C[a, b] the number of neighbouring sentences that hold a and b,

    PPMI[a, b] = max(0, log p(b | a) / p(b)),      PPMI ~ U S V^T

and since log p(b | a) - log p(b) is the mutual information of a and b, the token vectors are U sqrt(S) as part of a
source and V sqrt(S) as part of a target, with the unigram log-probabilities as biases. How far to trust them, one
factor for each of the three questions, is the value that makes training contexts most likely.
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse
import torch
from accelerate import Accelerator
from tqdm import tqdm

from ctxsim_hf.context_models.context_use import unigram_counts
from ctxsim_hf.context_models.generator_arguments import GeneratorArguments
from ctxsim_hf.context_models.light.modeling import LightContextGeneratorModel
from ctxsim_hf.context_models.light.training import LightGeneratorTask
from ctxsim_hf.text.tokenized import TokenizedChunks

SENTENCES_PER_BLOCK = 200_000  # neighbours counted at a time
SMOOTHING = 0.75  # exponent on the frequency of the predicted token: rare ones are not over-rated (Levy et al. 2015)
FITTING_CONTEXTS = 2000
SVD_ITERATIONS = 4


def fit_closed_form(
    task: LightGeneratorTask, arguments: GeneratorArguments, folder: Path, accelerator: Accelerator
) -> dict[str, Any]:
    """Set the weights of the task's model, on the CPU and on every process alike; returns its held-out figures."""
    chunks, model = task.data.train, task.model
    counts = neighbour_counts(chunks, model.config.vocab_size)
    set_token_vectors(model, positive_mutual_information(counts), unigram_counts(task.data), arguments.seed)
    fit_scales(task)
    return {"steps": 0, "pairs_counted": int(counts.sum()), **task.evaluate(model)}


def neighbour_counts(chunks: TokenizedChunks, vocab_size: int) -> scipy.sparse.csr_array:
    """How many ordered pairs of neighbouring sentences of a chunk hold one token and the other; symmetric."""
    firsts = np.setdiff1d(np.arange(len(chunks.lengths)), chunks.chunk_starts[1:] - 1)  # all but the last of a chunk
    total = scipy.sparse.csr_array((vocab_size, vocab_size), dtype=np.float32)
    for start in tqdm(range(0, len(firsts), SENTENCES_PER_BLOCK), desc="count", unit="block", disable=None):
        block = firsts[start : start + SENTENCES_PER_BLOCK]
        left, right = (_presence(chunks, sentences, vocab_size) for sentences in (block, block + 1))
        total = total + left.T @ right
    return (total + total.T).tocsr()


def _presence(chunks: TokenizedChunks, sentences: np.ndarray, vocab_size: int) -> scipy.sparse.csr_array:
    """(sentences, vocabulary): 1 where the sentence holds the token."""
    lengths = chunks.lengths[sentences]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    places = np.repeat(chunks.sentence_starts[sentences] - starts[:-1], lengths) + np.arange(starts[-1])
    ones = np.ones(starts[-1], dtype=np.float32)
    matrix = scipy.sparse.csr_array((ones, chunks.tokens[places], starts), shape=(len(sentences), vocab_size))
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def positive_mutual_information(counts: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """log p(b | a) / p(b) where above 0, with p(b) smoothed towards uniform."""
    rows = np.asarray(counts.sum(1)).ravel()
    smoothed = rows**SMOOTHING
    coordinates = counts.tocoo()
    given = coordinates.data / rows[coordinates.row]
    values = np.log(given / (smoothed[coordinates.col] / smoothed.sum())).astype(np.float32)
    keep = values > 0
    places = (coordinates.row[keep], coordinates.col[keep])
    return scipy.sparse.csr_array((values[keep], places), shape=counts.shape)


@torch.no_grad()
def set_token_vectors(
    model: LightContextGeneratorModel, matrix: scipy.sparse.csr_array, frequencies: np.ndarray, seed: int
) -> None:
    size = model.config.hidden_size
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse", UserWarning)  # torch calls its CSR matrices beta
        torch.manual_seed(seed)
        sparse = torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr),
            torch.from_numpy(matrix.indices),
            torch.from_numpy(matrix.data),
            matrix.shape,
        )
        left, values, right = torch.svd_lowrank(sparse, q=min(size + 16, min(matrix.shape)), niter=SVD_ITERATIONS)
    scale = values[:size].sqrt()
    model.input_embeddings.weight.zero_()
    model.output_embeddings.weight.zero_()
    model.input_embeddings.weight[:, : len(scale)] = left[:, :size] * scale
    model.output_embeddings.weight[:, : len(scale)] = right[:, :size] * scale
    # The average source must say nothing: what is likely anywhere is in the biases already.
    weights = torch.from_numpy(frequencies).float() * torch.sigmoid(model.token_weight_logits)
    model.input_embeddings.weight -= weights @ model.input_embeddings.weight / weights.sum()


@torch.no_grad()
def fit_scales(task: LightGeneratorTask) -> None:
    """Multiply each question's maps by the factor that makes its targets in training contexts most likely."""
    model, chunks = task.model.eval(), task.data.train
    sample = np.random.default_rng(task.arguments.seed).permutation(len(chunks.chunk_starts) - 1)
    places = task.places(task.train, model, chunks.contexts_of(sample[:FITTING_CONTEXTS])[:FITTING_CONTEXTS])
    maps = {
        "sentence": (model.left_to_sentence, model.right_to_sentence),
        "left": (model.sentence_to_left,),
        "right": (model.sentence_to_right,),
    }
    for direction, layers in maps.items():
        source, target = task.source(model, places, direction), places[direction]

        def loss(factor: float, source: torch.Tensor = source, target: Any = target) -> float:
            scaled = source * factor
            return -float(model.log_prob(scaled, model.normalisers(scaled), target).sum())

        best = scipy.optimize.minimize_scalar(loss, bounds=(0.0, 20.0), method="bounded", options={"xatol": 1e-3})
        for layer in layers:
            layer.weight *= float(best.x)
