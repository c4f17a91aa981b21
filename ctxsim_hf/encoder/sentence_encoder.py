"""Sentences -> vectors and similarities."""

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

from ctxsim_hf.encoder.find_surrogate import ONNX_SETTINGS, default_prompt, find_surrogate, fingerprint, is_static
from ctxsim_hf.encoder.onnx_surrogate import default_threads, open_onnx
from ctxsim_hf.encoder.part_encoder import (
    EncodedPart,
    EncodeSettings,
    PartEncoder,
    SentenceTokenizer,
    VectorModel,
)
from ctxsim_hf.encoder.static_surrogate import open_static
from ctxsim_hf.encoder.vector_file import VectorFile
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import read_json
from ctxsim_hf.runtime.parallel import available_cores, ordered_map
from ctxsim_hf.runtime.pretrained import explain_opening
from ctxsim_hf.runtime.validation import Count, check_value
from ctxsim_hf.text.sentence_checks import check_pairs, check_sentence, check_sentences

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)

SENTENCES_PER_PART = 50_000  # in memory and sorted by length together


class Source(NamedTuple):
    """What another process needs to open the same encoder."""

    folder: str
    device: str | None


class SentenceEncoder:
    r"""Encodes sentences with a surrogate.

    Open one with [`~SentenceEncoder.from_pretrained`], or make one of a model in memory:
    `SentenceEncoder(TorchSurrogate(model), tokenizer, max_tokens)`.

    A vector depends on nothing but its sentence, to 1e-5: neither on the batch nor on what else is encoded. A sentence
    of more than `max_tokens` tokens is truncated, and one warning says how many were. The vector of an empty sentence
    is that of its special tokens, such as `<s></s>`, or zero if the tokenizer has none. A default prompt of
    sentence-transformers is put before every sentence.
    """

    def __init__(
        self,
        model: VectorModel,
        tokenizer: SentenceTokenizer,
        max_tokens: int,
        source: Source | None = None,
        prompt: str = "",
    ) -> None:
        self.model, self.tokenizer, self.max_tokens, self._source = model, tokenizer, max_tokens, source
        self.encode_part = PartEncoder(model, tokenizer, max_tokens, prompt)

    @classmethod
    def from_pretrained(
        cls, surrogate: str | Path, device: str | None = None, num_threads: int | None = None
    ) -> "SentenceEncoder":
        r"""Open a surrogate.

        Args:
            surrogate (`str` or `Path`): Folder of a surrogate, or its id on the Hub. It may be made by
                `ctxsim export`; it then runs without torch, and its vectors always have length 1. A static one, also
                of sentence-transformers or model2vec, runs without torch as it is.
            device (`str`, *optional*): Device of torch. None takes a GPU if there is one.
            num_threads (`int`, *optional*): Number of threads on a CPU. None keeps the default.
        """
        path = find_surrogate(surrogate)
        with explain_opening("a surrogate", path):
            return cls._open(path, device, num_threads)

    @classmethod
    def _open(cls, path: Path, device: str | None, num_threads: int | None) -> "SentenceEncoder":
        if (path / ONNX_SETTINGS).exists():
            if device not in (None, "cpu"):
                raise UserError(f"an ONNX surrogate runs on the CPU, got the device {device!r}; leave it out")
            prompt = read_json(path / ONNX_SETTINGS).get("prompt", "")
            return cls(*open_onnx(path, num_threads), Source(str(path), device), prompt)
        if is_static(path):
            return cls(*open_static(path), Source(str(path), device), default_prompt(path))
        from ctxsim_hf.encoder.torch_surrogate import open_torch  # takes seconds, and ONNX does not need it

        return cls(*open_torch(path, device, num_threads), Source(str(path), device), default_prompt(path))

    def __repr__(self) -> str:
        where = "a model in memory" if self._source is None else repr(self._source.folder)
        kind = type(self.model).__name__.removesuffix("Surrogate").lower()
        return f"SentenceEncoder({where}: {self.model.vector_size} numbers, at most {self.max_tokens} tokens, {kind})"

    @property
    def where(self) -> str | None:
        """Return the folder of the encoder, or None for a model in memory."""
        return None if self._source is None else str(Path(self._source.folder).resolve())

    @cached_property
    def fingerprint(self) -> str | None:
        """Return one digest of the weights and the tokenizer, or None for a model in memory."""
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
        r"""Return the vectors of sentences, in their order: (sentences, vector size), float32.

        Sentences are read and encoded in parts of 50,000, and duplicates within a part are encoded once. With
        `output`, only the current parts are in memory, and the same call resumes after an interruption.

        Args:
            sentences: Any iterable of strings.
            normalize_embeddings (`bool`): Scale vectors to length 1, so that their dot product is the similarity.
            convert_to_tensor (`bool`): Return a torch tensor, on the CPU, instead of a numpy array.
            output (`str` or `Path`, *optional*): Write a `.npy` file and return it memory-mapped. An interrupted run
                leaves `<output>.ctxsim-partial`. None keeps the vectors in memory.
            tokens_per_batch (`int`, *optional*): Tokens in a batch, padding included; a longer sentence is a batch of
                its own. None takes what suits the device.
            num_processes (`int`): Number of processes, which share the cores; each takes seconds to start. A script
                that uses more than one must guard its entry point with `if __name__ == "__main__":`.
        """
        sentences = check_sentences(sentences)
        if output is not None and convert_to_tensor:
            raise UserError("output returns a memory-mapped numpy array; leave out convert_to_tensor or output")
        check_value("tokens_per_batch", tokens_per_batch, Count | None)
        check_value("num_processes", num_processes, Count)
        settings = EncodeSettings(tokens_per_batch or self.model.tokens_per_batch, normalize_embeddings)
        if output is not None:
            return self._encode_to_file(Path(output), sentences, settings, num_processes)
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
    ) -> np.ndarray:
        # A model in memory has no fingerprint, so its runs are never resumed.
        recipe = {"surrogate": self.fingerprint or os.urandom(16).hex(), **settings._asdict()}
        file = VectorFile(output, self.model.vector_size, recipe)
        return file.write(sentences, lambda first: self.encode_parts(sentences, settings, num_processes, first))

    def similarity(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> np.ndarray:
        """Return the cosine of each pair, (pairs,)."""
        sentences1, sentences2 = check_pairs(sentences1, sentences2)
        vectors = np.asarray(self.encode([*sentences1, *sentences2], normalize_embeddings=True))
        first, second = np.split(vectors, [len(sentences1)])
        return np.einsum("ij,ij->i", first, second, dtype=np.float64)

    def encode_parts(
        self, sentences: Iterable[str], settings: EncodeSettings, num_processes: int = 1, first: int = 0
    ) -> Iterator[tuple[list[str], np.ndarray]]:
        """Yield sentences and their vectors, part by part, starting with sentence number `first`."""
        number = len(sentences) if isinstance(sentences, Sized) else None
        size = SENTENCES_PER_PART
        if number and num_processes > 1:
            size = min(size, -(-number // (4 * num_processes)))  # several parts for every process
        row, truncated, first_truncated = first, 0, 0
        pending: deque[list[str]] = deque()
        parts = _checked_parts(sentences, size, first, pending)
        with tqdm(total=number, initial=first, desc="encode", unit="sentence", disable=None, delay=1) as bar:
            for part in self._map(parts, settings, num_processes, bar.update):
                if not truncated and len(part.too_long):
                    first_truncated = row + int(part.too_long[0])
                truncated += len(part.too_long)
                row += len(part.vectors)
                yield pending.popleft(), part.vectors
        if truncated:
            logger.warning(
                f"{truncated} of {row - first} sentences have more than {self.max_tokens} tokens and were truncated; "
                f"the first is sentence {first_truncated}"
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
        threads = max(1, (default_threads() or available_cores()) // num_processes)
        encode_part = partial(_encode_in_worker, self._source, threads, settings)
        for part in ordered_map(encode_part, parts, num_processes):
            progress(len(part.vectors))
            yield part


def _checked_parts(sentences: Iterable[str], size: int, first: int, pending: deque[list[str]]) -> Iterator[list[str]]:
    """Yield parts of sentences, starting with number `first`, and append them to `pending` until they have vectors."""
    iterator = islice(sentences, first, None)
    while part := list(islice(iterator, size)):
        for place, sentence in enumerate(part, first):
            check_sentence(sentence, f"sentence {place}")
        pending.append(part)
        yield part
        first += len(part)


def _encode_in_worker(source: Source, threads: int, settings: EncodeSettings, sentences: list[str]) -> EncodedPart:
    return _open_in_worker(source, threads).encode_part(sentences, settings, lambda number: None)


@cache
def _open_in_worker(source: Source, threads: int) -> SentenceEncoder:
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # else every process shows one while it opens the folder
    return SentenceEncoder.from_pretrained(*source, num_threads=threads)
