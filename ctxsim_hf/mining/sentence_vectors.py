"""Sentences -> their vectors in a memory-mapped file, by a surrogate or by any encoder of sentence-transformers."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tqdm import tqdm

from ctxsim_hf.encoder.encoder_signal import EncoderSignal
from ctxsim_hf.encoder.find_surrogate import find_surrogate
from ctxsim_hf.encoder.sentence_encoder import SentenceEncoder
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import writing

PART = 10_000  # sentences that are encoded at a time


def encode_sentences(encoder: str, sentences: Sequence[str], file: Path, num_processes: int = 1) -> np.ndarray:
    """Return vectors of length 1, memory-mapped from a file that this writes: (sentences, vector size).

    Args:
        encoder (`str`): Folder of a surrogate or of a SentenceTransformer, or its id on the Hub.
        sentences (`Sequence[str]`): The sentences.
        file (`Path`): The `.npy` file. After an interruption, a surrogate resumes.
        num_processes (`int`): Number of processes of a surrogate.
    """
    try:
        surrogate = SentenceEncoder.from_pretrained(encoder)
    except UserError:  # transformers does not know every model that sentence-transformers opens
        _encode_parts(EncoderSignal.open(find_surrogate(encoder)), sentences, file)
        return np.load(file, mmap_mode="r", allow_pickle=False)
    return np.asarray(surrogate.encode(sentences, normalize_embeddings=True, output=file, num_processes=num_processes))


def _encode_parts(signal: EncoderSignal, sentences: Sequence[str], file: Path) -> None:
    with writing(file) as path, tqdm(total=len(sentences), desc="encode", unit="sentence", disable=None) as bar:
        whole: np.ndarray | None = None
        for start in range(0, len(sentences), PART):
            part = signal.vectors(sentences[start : start + PART])
            if whole is None:
                shape = (len(sentences), part.shape[1])
                whole = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
            whole[start : start + len(part)] = part
            bar.update(len(part))
