"""What an index stores of every context: the discriminator's part and, for a light generator, the normaliser.

Made in blocks of chunks. A block on disk is not made again after an interruption, and each is made on one thread (an
LSTM gains nothing from a second), so that the bytes are the same for any number of processes.
"""

import shutil
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm
from transformers.utils.logging import disable_progress_bar

from ctxsim_hf.origin.context_index import NORMALISERS, PARTS, PARTS_REST, TOKENS
from ctxsim_hf.origin.fit_score import ContextTokens
from ctxsim_hf.origin.models import OriginModels
from ctxsim_hf.origin.term_scorers import DiscriminatorScorer, LightGeneratorScorer
from ctxsim_hf.runtime.parallel import ordered_map
from ctxsim_hf.runtime.stage import Stage
from ctxsim_hf.text.tokenized import TokenizedChunks, open_tokenized

BLOCKS = "blocks"
CHUNKS_PER_BLOCK = 4000  # whose sentences are encoded together


def num_contexts(chunks: TokenizedChunks) -> int:
    return len(chunks) - 2 * (len(chunks.chunk_starts) - 1)


def write_context_arrays(stage: Stage, chunks: TokenizedChunks, workers: int) -> None:
    """Fill `index/` of an origin folder that has its models and tokens already."""
    if not stage.has(f"index/{PARTS_REST}"):  # the last that is written
        _write_arrays(stage, chunks, workers)
    shutil.rmtree(stage.folder / BLOCKS, ignore_errors=True)


def _write_arrays(stage: Stage, chunks: TokenizedChunks, workers: int) -> None:
    number = len(chunks.chunk_starts) - 1
    blocks = [range(start, min(number, start + CHUNKS_PER_BLOCK)) for start in range(0, number, CHUNKS_PER_BLOCK)]
    names = [f"{BLOCKS}/{block.start:09d}.npz" for block in blocks]
    missing = {name: block for name, block in zip(names, blocks, strict=True) if not stage.has(name)}
    made = ordered_map(partial(_make_block, stage.folder), missing.values(), workers)
    done = len(blocks) - len(missing)
    bar = tqdm(made, desc="contexts", unit="block", total=len(blocks), initial=done, disable=None)
    for name, arrays in zip(missing, bar, strict=True):
        with stage.writing(name) as path, path.open("wb") as file:
            np.savez(file, **arrays)
    first = np.load(stage.folder / names[0])
    for name in (NORMALISERS, PARTS, PARTS_REST):
        key = Path(name).stem
        if key not in first:
            continue
        shape = (num_contexts(chunks), *first[key].shape[1:])
        with stage.writing(f"index/{name}") as path:
            whole = np.lib.format.open_memmap(path, mode="w+", dtype=first[key].dtype, shape=shape)
            row = 0
            for block_name in names:
                part = np.load(stage.folder / block_name)[key]
                whole[row : row + len(part)] = part
                row += len(part)
            whole.flush()


@torch.inference_mode()
def _make_block(folder: Path, block: range) -> dict[str, np.ndarray]:
    models, chunks = _opened(folder)
    tokens = ContextTokens(chunks, *chunks.neighbours(chunks.contexts_of(np.array(block)), models.width))
    found: dict[str, np.ndarray] = {}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for scorer in models.scorers():
            if isinstance(scorer, DiscriminatorScorer):
                parts = scorer.prepare_contexts(tokens).cpu().numpy()
                half = parts.astype(np.float16)
                found[Path(PARTS).stem] = half
                found[Path(PARTS_REST).stem] = (parts - half).astype(np.float16)
            elif isinstance(scorer, LightGeneratorScorer):
                found[Path(NORMALISERS).stem] = scorer.prepare_contexts(tokens).source[1].cpu().numpy()
    finally:
        torch.set_num_threads(threads)
    return found


@lru_cache(maxsize=1)
def _opened(folder: Path) -> tuple[OriginModels, TokenizedChunks]:
    disable_progress_bar()  # of reading weights: every process would show one
    return OriginModels.for_indexing(folder), open_tokenized(folder / "index" / TOKENS)
