"""Compute what a segment stores of every context for the context models, in blocks of chunks.

Each block runs on one thread (an LSTM gains nothing from a second), so that the bytes are the same for any number of
processes.
"""

import shutil
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from transformers.utils.logging import disable_progress_bar

from ctxsim_hf.context_models.base import ContextModel
from ctxsim_hf.context_models.contexts import Contexts
from ctxsim_hf.context_models.registry import (
    load_context_model,
    register_context_model,
    registered_context_models,
)
from ctxsim_hf.origin.context_index import STORED, TOKENS, IndexSentences, map_texts
from ctxsim_hf.origin.layout import CONTEXT_MODELS, TOKENIZER, Layout
from ctxsim_hf.runtime.blocks import FileBlocks
from ctxsim_hf.runtime.files import whole_folder, writing
from ctxsim_hf.runtime.threads import torch_threads
from ctxsim_hf.text.fast_tokenizer import open_tokenizer
from ctxsim_hf.text.tokenized import TokenizedChunks, open_tokenized

BLOCKS = "blocks"
CHUNKS_PER_BLOCK = 4000


@dataclass
class ContextArrays(FileBlocks):
    """The stored arrays of a segment that already has its tokens and texts. `folder` is that of the segment."""

    origin: Path  # with the models
    # Pickled with the work, so that a worker knows what its parent registered.
    registered: dict[str, type[ContextModel]] = field(default_factory=registered_context_models)
    chunks_per_block: int = CHUNKS_PER_BLOCK  # whose sentences are encoded together

    @cached_property
    def _chunks(self) -> TokenizedChunks:
        return open_tokenized(self.folder / TOKENS)

    @cached_property
    def _opened(self) -> tuple[dict[str, ContextModel], IndexSentences, int]:
        """Models, sentences and width, which all blocks need.

        The models run on the CPU, since there may be many processes and every machine should store the same.
        """
        disable_progress_bar()  # every process would show one for the weights
        layout = Layout.load(self.origin)
        names = layout.storing_models(self.origin)
        models = {name: load_context_model(self.origin / CONTEXT_MODELS / name) for name in names}
        sentences = IndexSentences(map_texts(self.folder), self._chunks, open_tokenizer(self.origin / TOKENIZER))
        return models, sentences, layout.width

    def blocks(self) -> list[str]:
        """Return the names of the blocks; none if no model stores anything."""
        if not Layout.load(self.origin).storing_models(self.origin):
            return []
        return [f"{BLOCKS}/{start:09d}.npz" for start in range(0, self._chunks.num_chunks, self.chunks_per_block)]

    def is_done(self, name: str) -> bool:
        """Return whether a block is finished, or merged already."""
        return super().is_done(name) or (self.folder / STORED).exists()

    @torch.inference_mode()
    def run_block(self, name: str) -> None:
        """Compute and write the arrays of one block."""
        for model_type, model_class in self.registered.items():
            register_context_model(model_type, model_class)
        start = int(Path(name).stem)
        block = np.arange(start, min(self._chunks.num_chunks, start + self.chunks_per_block))
        models, sentences, width = self._opened
        contexts = Contexts(sentences, *self._chunks.neighbours(self._chunks.contexts_of(block), width))
        with torch_threads(1):
            arrays = {
                f"{model_name}/{array_name}": array
                for model_name, model in models.items()
                for array_name, array in model.stored(contexts).items()
            }
        with writing(self.folder / name) as path, path.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)

    def merge(self) -> None:
        """Merge the blocks into one array for each name."""
        if names := self.blocks():
            target = self.folder / STORED
            if not target.exists():
                with whole_folder(target) as folder:
                    self._merge([self.folder / name for name in names], folder)
        shutil.rmtree(self.folder / BLOCKS, ignore_errors=True)

    def _merge(self, paths: list[Path], folder: Path) -> None:
        first = np.load(paths[0])
        for key in first.files:
            shape = (self._chunks.num_contexts, *first[key].shape[1:])
            path = folder / f"{key}.npy"
            path.parent.mkdir(exist_ok=True)
            whole = np.lib.format.open_memmap(path, mode="w+", dtype=first[key].dtype, shape=shape)
            row = 0
            for block in paths:
                part = np.load(block)[key]
                whole[row : row + len(part)] = part
                row += len(part)
            whole.flush()
