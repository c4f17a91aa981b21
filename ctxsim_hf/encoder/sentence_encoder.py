"""Sentences -> vectors, and how alike sentences are by them."""

import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from functools import cache, cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from tqdm import tqdm

from ctxsim_hf.encoder.find_surrogate import ONNX_SETTINGS, find_surrogate, fingerprint
from ctxsim_hf.encoder.onnx_surrogate import default_threads, open_onnx
from ctxsim_hf.encoder.part_encoder import (
    EncodedPart,
    EncodeSettings,
    PartEncoder,
    SentenceTokenizer,
    VectorModel,
)
from ctxsim_hf.encoder.vector_file import VectorFile
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.parallel import ordered_map
from ctxsim_hf.text.sentence_checks import check_pairs, check_sentence, check_two_lists

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)

SENTENCES_PER_PART = 50_000  # held in memory and sorted by length together


class Source(NamedTuple):
    """What it takes to open an encoder once more, in another process."""

    folder: str
    device: str | None


class SentenceEncoder:
    r"""
    Opened by [`~SentenceEncoder.from_pretrained`], or made of a model in memory:
    `SentenceEncoder(TorchSurrogate(model), tokenizer, max_tokens)`.

    A vector depends on nothing but its sentence, to 1e-5: not on the batch, nor on what else is encoded. A sentence of
    more than `max_tokens` tokens is cut, and one warning says how many were. An empty sentence has a vector like any
    other, that of its tokenizer's marks, such as `<s></s>`; of a tokenizer without marks, zeros.
    """

    def __init__(
        self, model: VectorModel, tokenizer: SentenceTokenizer, max_tokens: int, source: Source | None = None
    ) -> None:
        self.model, self.tokenizer, self.max_tokens, self._source = model, tokenizer, max_tokens, source
        self.encode_part = PartEncoder(model, tokenizer, max_tokens)

    @classmethod
    def from_pretrained(
        cls, surrogate: str | Path, device: str | None = None, num_threads: int | None = None
    ) -> "SentenceEncoder":
        r"""
        Args:
            surrogate (`str` or `Path`): Folder of a surrogate, or its id on the Hub; one made by `ctxsim export` too,
                which runs without torch and whose vectors always have length 1.
            device (`str`, *optional*): Where torch runs it. None takes a GPU if there is one.
            num_threads (`int`, *optional*): On a CPU. None takes as many as suit.
        """
        path = find_surrogate(surrogate)
        if (path / ONNX_SETTINGS).exists():
            if device not in (None, "cpu"):
                raise UserError(f"a surrogate in ONNX runs on the CPU, got the device {device!r}")
            return cls(*open_onnx(path, num_threads), Source(str(path), device))
        from ctxsim_hf.encoder.torch_surrogate import open_torch  # seconds, and not needed for the other kind

        return cls(*open_torch(path, device, num_threads), Source(str(path), device))

    @property
    def where(self) -> str | None:
        """The folder it was opened from; None for a model in memory."""
        return None if self._source is None else str(Path(self._source.folder).resolve())

    @cached_property
    def fingerprint(self) -> str | None:
        """One digest of all that shapes a vector; None for a model in memory."""
        return None if self._source is None else fingerprint(Path(self._source.folder))

    def encode(
        self,
        sentences: Iterable[str],
        *,
        normalize_embeddings: bool = False,
        convert_to_tensor: bool = False,
        output: str | Path | None = None,
        tokens_per_batch: int | None = None,
        num_processes: int = 1,
    ) -> "np.ndarray | torch.Tensor":
        r"""
        The vectors of sentences, in their order: (sentences, vector size), float32.

        Sentences are read and encoded in parts of 50,000. With `output` only the parts under way are in memory, so
        neither the sentences nor the vectors need to fit, and the same call goes on after an interruption; without it,
        all vectors are. A part's duplicates are encoded once.

        Args:
            sentences: Anything that gives strings one by one.
            normalize_embeddings (`bool`): Vectors of length 1, whose dot product is the similarity.
            convert_to_tensor (`bool`): A torch tensor, on the CPU, instead of a numpy array.
            output (`str` or `Path`, *optional*): Write a `.npy` file and return it memory-mapped. None writes none.
                What was interrupted stays beside it, in `<output>.partial`.
            tokens_per_batch (`int`, *optional*): Tokens of one batch, padding included; a longer sentence is a batch
                of its own. None takes what suits the device.
            num_processes (`int`): Encode on so many processes, which share the cores; each takes seconds to start. As
                ever with processes, a script that asks for them must guard its start with `__name__ == "__main__"`.
        """
        if isinstance(sentences, str):
            raise UserError("encode takes a list of sentences; got a string. Put it in a list")
        if output is not None and convert_to_tensor:
            raise UserError("output gives a memory-mapped numpy array; leave out convert_to_tensor or output")
        for name, value in (("tokens_per_batch", tokens_per_batch), ("num_processes", num_processes)):
            if value is not None and value < 1:
                raise UserError(f"{name} must be at least 1, got {value}")
        settings = EncodeSettings(tokens_per_batch or self.model.tokens_per_batch, normalize_embeddings)
        if output is not None:
            self._encode_to_file(Path(output), sentences, settings, num_processes)
            return np.load(output, mmap_mode="r", allow_pickle=False)
        sentences = sentences if isinstance(sentences, Sized) else list(sentences)
        vectors, row = np.empty((len(sentences), self.model.vector_size), np.float32), 0
        for _, part in self.encode_parts(sentences, settings, num_processes):
            vectors[row : row + len(part)] = part
            row += len(part)
        if not convert_to_tensor:
            return vectors
        import torch

        return torch.from_numpy(vectors)

    def _encode_to_file(
        self, output: Path, sentences: Iterable[str], settings: EncodeSettings, num_processes: int
    ) -> None:
        # Of a model in memory nobody knows whether it is still the same.
        recipe = {"surrogate": self.fingerprint or os.urandom(16).hex(), **settings._asdict()}
        file = VectorFile(output, self.model.vector_size, recipe)
        file.done.recall(sentences)
        file.write(self.encode_parts(sentences, settings, num_processes, file.done.rows))

    def similarity(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> np.ndarray:
        """The cosine of each pair, (pairs,)."""
        check_pairs(sentences1, sentences2)
        first, second = self._encode_both(sentences1, sentences2)
        return np.einsum("ij,ij->i", first, second, dtype=np.float64)

    def similarity_matrix(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> np.ndarray:
        """The cosine of each of the first with each of the second, (sentences1, sentences2)."""
        check_two_lists(sentences1, sentences2)
        first, second = self._encode_both(sentences1, sentences2)
        return first @ second.T

    def _encode_both(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> list[np.ndarray]:
        """Vectors of length 1."""
        vectors = self.encode([*sentences1, *sentences2], normalize_embeddings=True)
        return np.split(np.asarray(vectors), [len(sentences1)])

    def encode_parts(
        self, sentences: Iterable[str], settings: EncodeSettings, num_processes: int = 1, first: int = 0
    ) -> Iterator[tuple[list[str], np.ndarray]]:
        """Sentences and their vectors, part by part, from the sentence `first` on."""
        number = len(sentences) if isinstance(sentences, Sized) else None
        size = SENTENCES_PER_PART
        if number and num_processes > 1:
            size = min(size, -(-number // (4 * num_processes)))  # some for every process
        row, cut, first_cut = first, 0, 0
        under_way: deque[list[str]] = deque()
        parts = _checked_parts(sentences, size, first, under_way)
        with tqdm(total=number, initial=first, desc="encode", unit="sentence", disable=None, delay=1) as bar:
            for part in self._map(parts, settings, num_processes, bar.update):
                if not cut and len(part.too_long):
                    first_cut = row + int(part.too_long[0])
                cut += len(part.too_long)
                row += len(part.vectors)
                yield under_way.popleft(), part.vectors
        if cut:
            logger.warning(
                f"{cut} of {row - first} sentences have more than {self.max_tokens} tokens and were cut, "
                f"the first is sentence {first_cut}"
            )

    def _map(
        self,
        parts: Iterator[list[str]],
        settings: EncodeSettings,
        num_processes: int,
        progress: Callable[[int], object],
    ) -> Iterator[EncodedPart]:
        if num_processes == 1:
            for sentences in parts:
                yield self.encode_part(sentences, settings, progress)
            return
        if self._source is None:
            raise UserError("num_processes needs an encoder opened by from_pretrained: each process opens the folder")
        threads = max(1, (default_threads() or os.cpu_count() or 1) // num_processes)
        encode_part = partial(_encode_elsewhere, self._source, threads, settings)
        for part in ordered_map(encode_part, parts, num_processes):
            progress(len(part.vectors))
            yield part


def _checked_parts(
    sentences: Iterable[str], size: int, first: int, under_way: deque[list[str]]
) -> Iterator[list[str]]:
    """Parts of sentences from `first` on; they are also put into `under_way`, for whoever has their vectors."""
    iterator = islice(sentences, first, None)
    while part := list(islice(iterator, size)):
        for place, sentence in enumerate(part, first):
            check_sentence(sentence, f"sentence {place}")
        under_way.append(part)
        yield part
        first += len(part)


def _encode_elsewhere(source: Source, threads: int, settings: EncodeSettings, sentences: list[str]) -> EncodedPart:
    return _encoder_of_this_process(source, threads).encode_part(sentences, settings, lambda number: None)


@cache
def _encoder_of_this_process(source: Source, threads: int) -> SentenceEncoder:
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # of opening the folder: every process would show one
    return SentenceEncoder.from_pretrained(*source, num_threads=threads)
