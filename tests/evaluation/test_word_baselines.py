"""Word-based baselines: BM25 and word vectors by hand, in every form of file."""

import gzip
import math
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from ctxsim_hf.encoder.encoder_signal import EncoderSignal
from ctxsim_hf.evaluation.bm25 import Bm25
from ctxsim_hf.evaluation.sif import SIF_A, Sif, USif, remove_components, usif_weights
from ctxsim_hf.evaluation.word_vectors import WordVectors, read_vectors
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.lexical import TfidfCosine

CORPUS = ["the cat", "the dog", "the bird sings", "a cat sat down"]
VECTORS = {"the": [1.0, 0.0], "cat": [0.0, 2.0], "Cat": [3.0, 0.0], ".": [-1.0, -1.0]}


def test_bm25_by_hand() -> None:
    bm25 = Bm25(TfidfCosine.from_sentences(CORPUS))
    assert bm25.mean_length == 11 / 4
    cat, dog = math.log(4 / 3), math.log(4 / 2)  # `the` weighs ln(4 / 4) = 0

    def saturation(length: int) -> float:
        return 2.5 / (1 + 1.5 * (0.25 + 0.75 * length / 2.75))

    # Query `cat dog` finds cat in `the cat`: 2 words; as its own document it finds both, in 2 words too.
    forward = cat * saturation(2) / ((cat + dog) * saturation(2))
    backward = cat * saturation(2) / (cat * saturation(2))
    assert bm25.similarity(["cat dog"], ["the cat"])[0] == pytest.approx((forward + backward) / 2)
    assert bm25.similarity(["a cat", "dog", "", "the"], ["a cat", "cat", "cat", "the"]).tolist() == [1, 0, 0, 0]


def write_vectors(folder: Path, form: str) -> Path:
    path = folder / {"binary": "v.bin", "gzip": "v.txt.gz", "folder": "v"}.get(form, "v.txt")
    lines = [f"{word} {' '.join(map(str, vector))}\n" for word, vector in VECTORS.items()]
    header = f"{len(VECTORS)} 2\n"
    if form == "glove":
        path.write_text("".join(lines))
    elif form == "word2vec":
        path.write_text(header + "".join(lines))
    elif form == "gzip":
        path.write_bytes(gzip.compress("".join(lines).encode()))
    elif form == "binary":
        parts = [word.encode() + b" " + struct.pack("<2f", *vector) + b"\n" for word, vector in VECTORS.items()]
        path.write_bytes(header.encode() + b"".join(parts))
    else:
        path.mkdir()
        np.save(path / "v.npy", np.array(list(VECTORS.values()), dtype=np.float32))
        pa.parquet.write_table(pa.table({"index": list(VECTORS)}), path / "words.parquet")
    return path


@pytest.mark.parametrize("form", ["glove", "word2vec", "gzip", "binary", "folder"])
def test_every_form_of_file(tmp_path: Path, form: str) -> None:
    path = write_vectors(tmp_path, form)
    vectors = read_vectors(path, set(VECTORS) | {"absent"})
    assert {word: vector.tolist() for word, vector in vectors.items()} == VECTORS
    assert read_vectors(path, {"cat"}).keys() == {"cat"}


def test_a_mean_of_words(tmp_path: Path) -> None:
    encoded = WordVectors(str(write_vectors(tmp_path, "glove"))).encode(["The cat.", "Cat unheard", "unheard", ""])
    assert encoded.tolist() == [[0, 1 / 3], [3, 0], [0, 0], [0, 0]]  # `The` has only `the`, `Cat` has its own


def test_sif_by_hand(tmp_path: Path) -> None:
    counts = TfidfCosine.from_sentences(CORPUS)
    sentences = ["the cat", "cat", "the."]  # marks are no words
    encoded = Sif(str(write_vectors(tmp_path, "glove")), counts).encode(sentences)
    the, cat = (SIF_A / (SIF_A + df / 11) for df in (3, 2))
    plain = np.array([[the / 2, cat], [0, 2 * cat], [the, 0]])
    _, _, directions = np.linalg.svd(plain, full_matrices=False)
    assert encoded == pytest.approx(plain - np.outer(plain @ directions[0], directions[0]), abs=1e-12)


def test_usif_by_hand(tmp_path: Path) -> None:
    counts = TfidfCosine.from_sentences(CORPUS)
    sentences = ["the cat", "cat", "the.", "unheard"]  # of one word on average: 1 - (1 - 1 / 8) = 1 / 8
    encoded = USif(str(write_vectors(tmp_path, "glove")), counts).encode(sentences)
    a = (1 - 2 / 8) / (2 / 8 * 8 / 2)  # `the` and `cat`, of 8 words, are more frequent than 1 / 8
    the, cat = (a / (a / 2 + df / 11) for df in (3, 2))
    plain = np.array([[the / 2, cat / 2], [0, cat], [the, 0], [0, 0]])  # each dimension has the length 1
    _, _, directions = np.linalg.svd(plain, full_matrices=False)
    assert encoded == pytest.approx(plain - np.outer(plain @ directions[0], directions[0]), abs=1e-12)
    assert usif_weights(np.array([0.5, 0.1]), np.full(4, 0.25), 11).tolist() == [2, 2]  # no word is frequent


def test_a_direction_is_removed_by_its_share_of_the_variance() -> None:
    vectors = np.random.default_rng(0).normal(size=(30, 20)) * np.linspace(3, 1, 20) + 1
    _, sizes, directions = np.linalg.svd(vectors, full_matrices=False)
    wholly, partly = vectors.copy(), vectors.copy()
    for size, direction in zip(sizes[:5], directions[:5], strict=True):
        wholly -= np.outer(wholly @ direction, direction)
        partly -= size**2 / (sizes[:5] ** 2).sum() * np.outer(partly @ direction, direction)
    np.testing.assert_allclose(remove_components(vectors, 5), wholly, atol=1e-10)
    np.testing.assert_allclose(remove_components(vectors, 5, by_variance=True), partly, atol=1e-10)
    # Of two sentences, which have two directions, only the first is removed.
    assert np.linalg.norm(remove_components(vectors[:2], 10), axis=1).min() > 0.1


def test_not_is_read_in_every_spelling(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_text("ca 1 2 0\ncan 1 2 1\nnot 0 1 5\nn't 9 9 9\n")
    words = Sif(str(path), TfidfCosine.from_sentences(CORPUS))
    one, other, _ = words.encode(["ca not", "ca n't", "can"])
    assert one.tolist() == other.tolist()


def test_words_of_a_real_sentence(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_text("".join(f"{word} {i} 1\n" for i, word in enumerate(["it", "'s", "do", "n't", "5,000", "-"])))
    words = EncoderSignal(WordVectors(str(path)).encode)
    assert words.similarity(["It's", "don't", "5,000-5,000"], ["it 's", "do n't", "5,000 - 5,000"]) == pytest.approx(
        [1] * 3
    )
    assert WordVectors(str(path)).encode(["don't it's 5,000-"])[0].tolist() == [2.5, 1]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("v.txt", b"the 1 2\ncat 1\n", "line 2: expected a word and 2 numbers"),
        ("v.txt", b"the one two\n", "line 1: expected a word and 2 numbers"),
        ("v.bin", b"the 1 2\n", "expected a word2vec file"),
        ("v.bin", b"2 2\nthe 12345678", "ends before the 2 words"),
        ("v.txt", b"zzz 1 2\n", "no word of the 1 sentences has a vector"),
    ],
    ids=["short", "words", "header", "cut", "none"],
)
def test_files_that_are_none(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message):
        WordVectors(str(tmp_path / name)).encode(["the"])


def test_folders_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="which does not exist"):
        WordVectors(str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match=r"one .npy and one .parquet in .* found 0 and 0"):
        WordVectors(str(tmp_path)).encode(["the"])
