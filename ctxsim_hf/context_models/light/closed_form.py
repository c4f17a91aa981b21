"""Chunks -> a light generator without gradient steps: co-occurrence in neighbouring sentences, PPMI, truncated SVD.

With C[a, b] the number of pairs of neighbouring sentences of which one contains a and the other b,

    PPMI[a, b] = max(0, log p(b | a) / p(b)),      PPMI ~ U S V^T

and since log p(b | a) - log p(b) is the mutual information of a and b, the token vectors are U sqrt(S) as part of a
source and V sqrt(S) as part of a target, with the unigram log-probabilities as biases. They are scaled by one factor
for each of the three directions, the one that makes training contexts most likely.
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

SENTENCES_PER_BLOCK = 200_000  # counted at a time
SMOOTHING = 0.75  # exponent of the frequency of the target token, against a bias to rare ones (Levy et al. 2015)
FITTING_CONTEXTS = 2000
SVD_ITERATIONS = 4


def fit_closed_form(
    task: LightGeneratorTask, arguments: GeneratorArguments, folder: Path, accelerator: Accelerator
) -> dict[str, Any]:
    """Set the weights of the task's model, on the CPU of every process, and return its held-out figures."""
    chunks, model = task.data.train, task.model
    counts = neighbour_counts(chunks, model.config.vocab_size)
    set_token_vectors(model, positive_mutual_information(counts), unigram_counts(task.data), arguments.seed)
    fit_scales(task)
    return {"steps": 0, "pairs_counted": int(counts.sum()), **task.evaluate(model)}


def neighbour_counts(chunks: TokenizedChunks, vocab_size: int) -> scipy.sparse.csr_array:
    """Return the number of ordered pairs of neighbouring sentences that contain each pair of tokens; symmetric."""
    firsts = np.setdiff1d(np.arange(len(chunks.lengths)), chunks.chunk_starts[1:] - 1)  # all but the last of a chunk
    total = scipy.sparse.csr_array((vocab_size, vocab_size), dtype=np.float32)
    for start in tqdm(range(0, len(firsts), SENTENCES_PER_BLOCK), desc="count", unit="block", disable=None):
        block = firsts[start : start + SENTENCES_PER_BLOCK]
        left, right = (_presence(chunks, sentences, vocab_size) for sentences in (block, block + 1))
        total = total + left.T @ right
    return (total + total.T).tocsr()


def _presence(chunks: TokenizedChunks, sentences: np.ndarray, vocab_size: int) -> scipy.sparse.csr_array:
    """Return a matrix (sentences, vocabulary) that is 1 where a sentence contains a token."""
    picked = chunks.pick(sentences)
    ones = np.ones(len(picked.tokens), dtype=np.float32)
    parts = (ones, picked.tokens, picked.sentence_starts)
    matrix = scipy.sparse.csr_array(parts, shape=(len(sentences), vocab_size))
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def positive_mutual_information(counts: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """Return log p(b | a) / p(b) where it is positive, with p(b) smoothed towards uniform."""
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
    """Set input and output embeddings to the factors of a truncated SVD."""
    size = model.config.hidden_size
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse", UserWarning)  # torch warns that its CSR matrices are in beta
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
    # The average source must carry no information, since the biases hold the unigram frequencies already.
    weights = torch.from_numpy(frequencies).float() * torch.sigmoid(model.token_weight_logits)
    model.input_embeddings.weight -= weights @ model.input_embeddings.weight / weights.sum()


@torch.no_grad()
def fit_scales(task: LightGeneratorTask) -> None:
    """Multiply the maps of each direction by the factor that makes its targets in training contexts most likely."""
    model, chunks = task.model.eval(), task.data.train
    sample = np.random.default_rng(task.arguments.seed).permutation(chunks.num_chunks)
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
