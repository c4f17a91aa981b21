"""Sentences -> their vectors in a memory-mapped file, by a surrogate or by any encoder of sentence-transformers."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import xxhash
from tqdm import tqdm

from ctxsim_hf.encoder.encoder_signal import EncoderSignal
from ctxsim_hf.encoder.find_surrogate import find_surrogate
from ctxsim_hf.encoder.sentence_encoder import SentenceEncoder
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import describe_file, digest_file, read_json, write_json, writing

PART = 10_000  # sentences that are encoded at a time


def encode_sentences(encoder: str, sentences: Sequence[str], file: Path, num_processes: int = 1) -> np.ndarray:
    """Return vectors of length 1, memory-mapped from a file: (sentences, vector size).

    The file is written unless an earlier run has finished it. A JSON file beside it says what it was made of.

    Args:
        encoder (`str`): Folder of a surrogate or of a SentenceTransformer, or its id on the Hub.
        sentences (`Sequence[str]`): The sentences.
        file (`Path`): The `.npy` file. After an interruption, a surrogate resumes.
        num_processes (`int`): Number of processes of a surrogate.
    """
    folder, record = find_surrogate(encoder), file.with_suffix(".json")
    made_of = {"encoder": _digest_folder(folder), "sentences": _digest_texts(sentences)}
    if not _is_finished(file, record, made_of):
        record.unlink(missing_ok=True)  # before the file changes, since a kill may come at any moment
        _encode(folder, sentences, file, num_processes)
        write_json(record, made_of | describe_file(file))
    vectors: np.ndarray = np.load(file, mmap_mode="r", allow_pickle=False)
    return vectors


def _is_finished(file: Path, record: Path, made_of: dict[str, str]) -> bool:
    try:
        return file.exists() and read_json(record) == made_of | describe_file(file)
    except UserError:
        return False  # damaged: encode again


def _encode(folder: Path, sentences: Sequence[str], file: Path, num_processes: int) -> None:
    try:
        surrogate = SentenceEncoder.from_pretrained(folder)
    except UserError:  # transformers does not know every model that sentence-transformers opens
        _encode_parts(EncoderSignal.open(folder), sentences, file)
    else:
        surrogate.encode(sentences, normalize_embeddings=True, output=file, num_processes=num_processes)


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


def _digest_folder(folder: Path) -> str:
    digests = [digest_file(path) for path in sorted(folder.rglob("*")) if path.is_file()]
    return xxhash.xxh3_128_hexdigest("".join(digests).encode())


def _digest_texts(sentences: Sequence[str]) -> str:
    digest = xxhash.xxh3_128()
    for sentence in sentences:
        digest.update(sentence.encode("utf-8", "surrogatepass") + b"\xff")  # a separator that UTF-8 never has
    return digest.hexdigest()
