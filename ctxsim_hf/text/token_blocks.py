"""Parquet files of chunks -> the flat arrays of tokenized.py, in blocks, one for each shard."""

import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

from ctxsim_hf.runtime.blocks import FileBlocks
from ctxsim_hf.runtime.files import writing
from ctxsim_hf.runtime.pretrained import open_auto_tokenizer
from ctxsim_hf.text.chunks import SHARD_PATTERN

if TYPE_CHECKING:
    from transformers import TokenizersBackend

SENTENCES_PER_BATCH = 10_000
# A fast tokenizer sets its truncation and padding before each call, which fails while another thread is calling it.
_one_thread_at_a_time = threading.Lock()
STARTS = {  # array of starts -> name of the array of their differences in a block
    "sentence_starts": "tokens_of_sentences",
    "chunk_starts": "sentences_of_chunks",
    "document_starts": "sentences_of_documents",
}


@dataclass
class TokenBlocks(FileBlocks):
    """The sentences of one split, tokenised shard by shard in `folder` and merged into arrays in `output`."""

    output: Path
    chunks: Path
    tokenizer_folder: Path
    split: str

    @cached_property
    def _tokenizer(self) -> "TokenizersBackend":
        tokenizer: TokenizersBackend = open_auto_tokenizer(self.tokenizer_folder)
        return tokenizer

    @cached_property
    def _dtype(self) -> np.dtype:
        return np.dtype(np.uint16 if len(self._tokenizer) <= 1 << 16 else np.uint32)

    def blocks(self) -> list[str]:
        return [f"{shard.stem}.npz" for shard in sorted(self.chunks.glob(SHARD_PATTERN))]

    def run_block(self, name: str) -> None:
        shard = self.chunks / Path(SHARD_PATTERN).with_name(f"{Path(name).stem}.parquet")
        table = pq.read_table(shard, columns=["doc_id", "sentences"], filters=[("split", "=", self.split)]).to_pydict()
        tokens, lengths = [np.zeros(0, self._dtype)], []
        for ids in encode_batches(self._tokenizer, [s for sentences in table["sentences"] for s in sentences]):
            lengths += [len(row) for row in ids]
            tokens.append(np.concatenate([np.array(row, self._dtype) for row in ids]))
        chunks = [len(sentences) for sentences in table["sentences"]]
        # No document is in two shards, and the chunks of a document are consecutive.
        documents = [
            sum(number for _, number in rows)
            for _, rows in groupby(zip(table["doc_id"], chunks, strict=True), lambda row: row[0])
        ]
        arrays: dict[str, Any] = {"tokens": np.concatenate(tokens)}
        for key, numbers in zip(STARTS.values(), (lengths, chunks, documents), strict=True):
            arrays[key] = np.array(numbers, np.int64)
        with writing(self.folder / name) as path, path.open("wb") as file:
            np.savez(file, **arrays)

    def merge(self) -> None:
        """Write the arrays and remove the blocks."""
        files = [self.folder / name for name in self.blocks()]
        for name, key in STARTS.items():
            np.save(self.output / f"{name}.npy", starts_of(np.concatenate([np.load(file)[key] for file in files])))
        number = sum(int(np.load(file)["tokens_of_sentences"].sum()) for file in files)
        whole = np.lib.format.open_memmap(self.output / "tokens.npy", mode="w+", dtype=self._dtype, shape=(number,))
        start = 0
        for file in files:
            tokens = np.load(file)["tokens"]
            whole[start : start + len(tokens)] = tokens
            start += len(tokens)
        whole.flush()
        shutil.rmtree(self.folder)


def encode_batches(tokenizer: "TokenizersBackend", sentences: list[str]) -> Iterator[list[list[int]]]:
    """Yield the token ids of sentences, without special tokens, in batches."""
    for start in range(0, len(sentences), SENTENCES_PER_BATCH):
        batch = sentences[start : start + SENTENCES_PER_BATCH]
        with _one_thread_at_a_time:
            ids = tokenizer(batch, add_special_tokens=False, return_attention_mask=False, verbose=False)["input_ids"]
        yield ids


def starts_of(lengths: np.ndarray) -> np.ndarray:
    """Return the start of each of consecutive pieces, and the end of the last."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
