"""Draw sentences of an origin and compute their vectors in blocks of work, one for each parquet file."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack, issparse
from tqdm import tqdm

from ctxsim_hf.harvest.drawing import Drawing, Mix
from ctxsim_hf.harvest.teacher_vectors import VECTOR_SPLITS, read_dense, vector_files, write_dense, write_rest
from ctxsim_hf.harvest.vector_arguments import VectorArguments
from ctxsim_hf.origin.context_index import ContextIndex
from ctxsim_hf.origin.similarity import OriginSimilarity
from ctxsim_hf.runtime.blocks import FileBlocks
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import writing
from ctxsim_hf.runtime.parallel import available_cores
from ctxsim_hf.runtime.threads import torch_threads

# Half of a group is drawn at random, the other half are sentences near one of these.
MIX = Mix(near=5, document=1, unrelated=2, farthest=16, random_share=1.0)
VALIDATION_SHARE = 0.1  # of the sentences asked for, in addition to them
VALIDATION_HASHES = 20  # one sentence in so many may be drawn for validation
FEWEST = 4  # sentences of a split
PLAN_FILE = "plan.npz"


def vector_split_of(keys: np.ndarray) -> np.ndarray:
    """Return the place in `drawing.PAIR_SPLITS` of each sentence hash: 5 % validation, and 1 % test as in a harvest,
    whose validation sentences are among those of validation here."""
    places = np.where(keys % np.uint64(VALIDATION_HASHES) == 1, 1, 0).astype(np.int8)
    places[keys % np.uint64(100) == 0] = 2
    return places


def draw_sentences(index: ContextIndex, number: int, tokens: tuple[int, int], seed: int) -> dict[str, np.ndarray]:
    """Return sentences of each split, by their numbers in the index; fewer than `number` if there are too few."""
    drawing = Drawing(index, MIX, tokens, seed, vector_split_of)
    drawn = {}
    for split, wanted in zip(VECTOR_SPLITS, (number, int(number * VALIDATION_SHARE)), strict=True):
        groups, found = drawing.groups(split), np.zeros(0, np.int64)
        while len(found) < wanted and (group := next(groups, None)) is not None:
            found = np.append(found, group.sentences)
        if len(found) < FEWEST:
            raise UserError(
                f"expected {FEWEST} sentences or more of {tokens[0]} to {tokens[1]} tokens for {split}, found "
                f"{len(found)}; index more documents, or raise --sentences or --max-tokens"
            )
        drawn[split] = found[: max(wanted, FEWEST)]
    return drawn


def check_vectors(origin: OriginSimilarity) -> None:
    """Refuse an origin with a signal that only compares pairs."""
    for name, signal in origin.signals.items():
        if not hasattr(signal, "vectors"):
            known = " ".join(other for other, found in origin.signals.items() if hasattr(found, "vectors"))
            raise UserError(
                f"the signal {name!r} compares pairs and has no vectors of sentences; leave it out, such as with "
                f"--signals {known or 'words'}=1, or harvest pairs with ctxsim harvest"
            )


@dataclass
class VectorBlocks(FileBlocks):
    """The parquet files of a folder of vectors."""

    arguments: VectorArguments

    @cached_property
    def origin(self) -> OriginSimilarity:
        """The origin, opened on first use."""
        return self.arguments.open_origin(self.arguments.origin)

    @cached_property
    def _sentences(self) -> dict[str, np.ndarray]:
        """Numbers of the sentences of each split, drawn by the first process that needs them."""
        path, arguments = self.folder / PLAN_FILE, self.arguments
        if not path.exists():
            check_vectors(self.origin)
            tokens = (arguments.min_tokens, arguments.max_tokens)
            drawn = draw_sentences(self.origin.index, arguments.sentences, tokens, arguments.seed)
            with writing(path, shared=True) as temporary, temporary.open("wb") as file:
                np.savez(file, **drawn)  # type: ignore[arg-type]
        with np.load(path) as plan:
            return dict(plan)

    @cached_property
    def _parts(self) -> dict[str, np.ndarray]:
        """Map the names of files to the numbers of their sentences."""
        parts, a_file = {}, self.arguments.sentences_per_file
        for split, numbers in self._sentences.items():
            total = -(-len(numbers) // a_file)
            bounds = [*range(0, len(numbers), a_file), len(numbers)]
            for place, (start, end) in enumerate(pairwise(bounds)):
                parts[f"data/{split}-{place:05d}-of-{total:05d}.parquet"] = numbers[start:end]
        return parts

    def blocks(self) -> list[str]:
        """Return the names of the files."""
        return list(self._parts)

    def run_block(self, name: str) -> None:
        """Compute the dense vectors of one file and write it."""
        texts = self._texts(self._parts[name])
        workers = self.arguments.workers
        with torch_threads(None if workers == 1 else max(1, available_cores() // workers)):
            dense = self._scaled(texts, sparse=False)
        write_dense(self.folder / name, texts, np.hstack([np.zeros((len(texts), 0), np.float32), *dense]))

    def _texts(self, numbers: np.ndarray) -> list[str]:
        """Return sentences, or their whole chunks, as the hash of a sentence decides."""
        index = self.origin.index
        is_passage = (index.sentence_keys[numbers] >> np.uint64(8)) % np.uint64(1000) < 1000 * self.arguments.passages
        chunks = iter(index.chunk_of(numbers[is_passage]))
        return [
            " ".join(next(chunks)[0].sentences) if passage else text
            for text, passage in zip(index.texts(numbers), is_passage.tolist(), strict=True)
        ]

    def merge(self) -> dict[str, Any]:
        """Write the sparse vectors and the neighbours, and remove the plan; return the counts that stage.json
        records."""
        counts = {}
        for split in tqdm(self._sentences, "merge", unit="split", disable=None):
            texts, dense = read_dense(vector_files(self.folder, split))
            sparse = [csr_array(part, dtype=np.float32) for part in self._scaled(texts, sparse=True)]
            write_rest(self.folder, split, dense, csr_array(hstack([csr_array((len(texts), 0)), *sparse], "csr")))
            counts[split] = len(texts)
        for path in self.folder.glob(f"*{PLAN_FILE}*"):  # also temporary files of a process that was killed
            path.unlink()
        return {"sentences": counts, "shares": self.origin.shares, "dense_size": dense.shape[1]}

    def _scaled(self, texts: Sequence[str], sparse: bool) -> list[Any]:
        """Return the vectors of the signals whose vectors are sparse, or of the others. They are scaled by the root of
        the share of the signal, so that dot products add up to the mean."""
        origin = self.origin
        names = [name for name in origin.signals if self._is_sparse[name] == sparse]
        return [origin.signals[name].vectors(texts) * origin.shares[name] ** 0.5 for name in names]  # type: ignore[attr-defined]

    @cached_property
    def _is_sparse(self) -> dict[str, bool]:
        probe = self.origin.background[:1]
        return {name: issparse(signal.vectors(probe)) for name, signal in self.origin.signals.items()}  # type: ignore[attr-defined]
