"""Turn files of word vectors into sentence vectors: the mean of a sentence's words. See sif.py for weighted means.

Three formats are read. Text: a word and its numbers in a line (GloVe), after a line with the counts (word2vec).
Binary: that line, then each word and its float32 numbers (word2vec's .bin). A folder: one .npy of vectors and one
.parquet whose first column holds their words.
"""

import gzip
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, cast

import numpy as np
from tqdm import tqdm

from ctxsim_hf.runtime.errors import UserError

# Tokenised roughly as the corpora of GloVe were: a full stop is a word, and it's becomes it and 's.
_TOKEN = re.compile(
    r"\d+(?:[.,:]\d+)*|'(?:s|re|ve|ll|d|m)\b|n't\b|[^\W\d_]+?(?=n't\b)|[^\W\d_]+|[^\w\s]", re.IGNORECASE
)

Vectors = dict[str, np.ndarray]


class WordVectors:
    """Word vectors as a sentence encoder.

    Args:
        path (`str`): The file or folder. It is read on demand, and only the vectors of words that occur are kept.
    """

    def __init__(self, path: str) -> None:
        if not Path(path).exists():
            raise UserError(f"expected word vectors in {path!r}, which does not exist")
        self.path = Path(path)

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        """Return a vector for each sentence; that of a sentence without a known word is 0."""
        tokens = [self.tokens(sentence) for sentence in sentences]
        wanted = {form for words in tokens for word in words for form in (word, word.lower())}
        vectors = read_vectors(self.path, wanted)
        if not vectors:
            raise UserError(f"no word of the {len(sentences)} sentences has a vector in {str(self.path)!r}")
        forms = [[_form(word, vectors) for word in words] for words in tokens]
        return self.average([[word for word in words if word in vectors] for words in forms], vectors)

    def tokens(self, sentence: str) -> list[str]:
        """Return the words and marks of a sentence."""
        return _TOKEN.findall(sentence)

    def average(self, sentences: Sequence[Sequence[str]], vectors: Vectors) -> np.ndarray:
        """Return a vector for each sentence, given as words that have vectors: (sentences, vector size)."""
        nothing = np.zeros_like(next(iter(vectors.values())))
        return np.stack([np.mean([vectors[word] for word in words] or [nothing], axis=0) for words in sentences])


def read_vectors(path: Path, wanted: set[str]) -> Vectors:
    """Return the vectors of these words, as far as the file has them."""
    if path.is_dir():
        return _read_folder(path, wanted)
    rows = _read_binary(path) if ".bin" in path.suffixes else _read_text(path)
    return {word: vector for word, vector in tqdm(rows, "read vectors", disable=None) if word in wanted}


def _read_folder(folder: Path, wanted: set[str]) -> Vectors:
    import pyarrow.parquet

    arrays, tables = sorted(folder.glob("*.npy")), sorted(folder.glob("*.parquet"))
    if len(arrays) != 1 or len(tables) != 1:
        raise UserError(
            f"expected one .npy and one .parquet in {str(folder)!r}, found {len(arrays)} and {len(tables)}"
        )
    matrix = np.load(arrays[0], mmap_mode="r", allow_pickle=False)
    words = pyarrow.parquet.read_table(tables[0]).column(0).to_pylist()
    if matrix.ndim != 2 or len(words) != len(matrix):
        raise UserError(f"{arrays[0].name} has the shape {matrix.shape}, but {tables[0].name} has {len(words)} words")
    return {word: np.array(matrix[row], dtype=np.float64) for row, word in enumerate(words) if word in wanted}


def _open(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _read_text(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    size = None
    with _open(path) as file:
        for number, line in enumerate(file, 1):
            # A word may hold spaces (GloVe 840B has some): the numbers are counted from the right.
            cells = line.decode("utf-8", "replace").rstrip().split(" ")
            if number == 1 and len(cells) == 2 and all(cell.isdigit() for cell in cells):
                size = int(cells[1])
                continue
            size = size or len(cells) - 1
            try:
                vector = np.array(cells[-size:], dtype=np.float64)
            except ValueError:
                vector = np.zeros(0)
            if size < 1 or len(cells) <= size or len(vector) != size:
                raise UserError(f"{str(path)!r}, line {number}: expected a word and {size} numbers, got {line[:60]!r}")
            yield " ".join(cells[:-size]), vector


def _read_binary(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    with _open(path) as file:
        header = file.readline(100).split()
        if len(header) != 2 or not all(cell.isdigit() for cell in header):
            raise UserError(f"expected a word2vec file in {str(path)!r}: two counts, then words, got {header!r}")
        number, size = map(int, header)
        for _ in range(number):
            word = bytearray()
            while (byte := file.read(1)) not in (b" ", b""):
                word += byte
            data = file.read(4 * size)
            if len(data) != 4 * size:
                raise UserError(f"{str(path)!r} ends before the {number} words it announces")
            yield word.decode("utf-8", "replace").lstrip("\n"), np.frombuffer(data, "<f4").astype(np.float64)


def _form(word: str, vectors: Vectors) -> str:
    """Return a word as it is if that has a vector (word2vec keeps case), else in lower case."""
    return word if word in vectors else word.lower()
