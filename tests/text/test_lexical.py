"""TF-IDF cosine: weights and cosines by hand and by brute force, odd sentences, the same from disk."""

import math
import os
import random
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.lexical import TfidfCosine

CORPUS = ["The cat sat.", "the the dog", "A cat and a dog", "the 7 birds", "nothing", "at all"]
WITHOUT_WORDS = ["", "  ", "?!", "😀👍🏽", "❤\ufe0f", "\x00"]


def test_weights_by_hand() -> None:
    weights = TfidfCosine.from_sentences(CORPUS).idf(["the", "cat", "sat", "7", "unheard"])
    assert weights == pytest.approx([math.log(6 / 4), math.log(6 / 3), math.log(6 / 2), math.log(6 / 2), 14])


def test_no_weight_is_below_0() -> None:
    assert TfidfCosine.from_sentences(["a b", "a"]).idf(["a", "b"]).tolist() == [0, 0]


def test_cosines_by_hand() -> None:
    tfidf = TfidfCosine.from_sentences(CORPUS)
    the, cat, dog = math.log(6 / 4), math.log(6 / 3), math.log(6 / 3)
    scores = tfidf.similarity(
        ["The CAT, the cat!", "the cat", "the cat", "new 7 words"], ["the-dog", "the cat", "birds", "7"]
    )
    assert scores.dtype == np.float64
    assert scores[0] == pytest.approx(the**2 / math.sqrt((the**2 + cat**2) * (the**2 + dog**2)))
    assert scores[1:3].tolist() == [1, 0]
    assert scores[3] == pytest.approx(math.log(3) / math.sqrt(2 * 14**2 + math.log(3) ** 2))


def brute_force(corpus: Sequence[str], sentence1: str, sentence2: str) -> float:
    """Dense vectors over the words of both, df by going through the corpus anew."""
    bags = [set(re.findall(r"\w+", sentence.lower())) for sentence in corpus]
    first, second = (set(re.findall(r"\w+", sentence.lower())) for sentence in (sentence1, sentence2))
    words = sorted(first | second)
    df = [sum(word in bag for bag in bags) for word in words]
    idf = np.array([max(0.0, math.log(len(bags) / (n + 1))) if n else 14.0 for n in df])
    vectors = [idf * [word in bag for word in words] for bag in (first, second)]
    length = np.linalg.norm(vectors[0]) * np.linalg.norm(vectors[1])
    return float(vectors[0] @ vectors[1] / length) if length else 0.0


def test_cosines_by_brute_force() -> None:
    chooser = random.Random(0)
    words = [*"abcdefghij", "11", "12", "it's", "x9"]

    def sentences(number: int, vocabulary: list[str]) -> list[str]:
        return [" ".join(chooser.choices(vocabulary, k=chooser.randint(0, 8))) for _ in range(number)]

    corpus = sentences(50, words[:12])
    first, second = sentences(200, words), sentences(200, words)
    expected = [brute_force(corpus, a, b) for a, b in zip(first, second, strict=True)]
    assert len(set(expected)) > 100
    assert TfidfCosine.from_sentences(iter(corpus)).similarity(first, second) == pytest.approx(expected)


def test_without_words_the_similarity_is_0() -> None:
    tfidf = TfidfCosine.from_sentences(CORPUS)
    assert not tfidf.similarity(WITHOUT_WORDS, WITHOUT_WORDS).any()
    assert not tfidf.similarity(WITHOUT_WORDS, ["the cat"] * len(WITHOUT_WORDS)).any()
    assert tfidf.similarity([], []).shape == (0,)


def test_words_of_any_language() -> None:
    tfidf = TfidfCosine.from_sentences(["Die Straße ist naß", "Кошка спит", "日本", "x"])
    first, second = ["straße", "кошка", "日本", "naß"], ["STRASSE Straße", "Кошка", "日本", "nass"]
    assert tfidf.similarity(first, second) == pytest.approx([math.log(2) / math.hypot(math.log(2), 14), 1, 1, 0])


def test_marks_and_joiners_belong_to_their_words() -> None:
    hindi, decomposed, persian = "पानी", "cafe\u0301", "می\u200cروم"
    tfidf = TfidfCosine.from_sentences([hindi, decomposed, persian, "x"])
    assert tfidf.idf([hindi, decomposed, persian]) == pytest.approx([math.log(2)] * 3)
    assert tfidf.similarity([hindi, decomposed], ["पान", "cafe"]).tolist() == [0, 0]


def test_a_pair_does_not_depend_on_its_company() -> None:
    tfidf = TfidfCosine.from_sentences(CORPUS)
    first, second = ["the cat sat", "a 7", "odd new words"], ["the dog", "7 cats", "new words"]
    alone = [tfidf.similarity([a], [b])[0] for a, b in zip(first, second, strict=True)]
    assert tfidf.similarity(first, second).tolist() == alone
    assert tfidf.similarity(second, first).tolist() == alone


@pytest.mark.parametrize("corpus", [CORPUS, ["!"]], ids=["words", "no words"])
def test_the_same_from_disk(tmp_path: Path, corpus: list[str]) -> None:
    made = TfidfCosine.from_sentences(corpus)
    made.save(tmp_path / "made")
    loaded = TfidfCosine.load(tmp_path / "made")
    loaded.save(tmp_path / "again")
    pairs = (["the cat sat", "new cat"], ["a cat", "new dog"])
    assert loaded.similarity(*pairs).tolist() == made.similarity(*pairs).tolist()
    for file in (tmp_path / "made").iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()


def test_the_same_bits_in_another_process() -> None:
    # The order of a set of strings differs between processes, and so would a sum in that order.
    code = (
        "import sys; sys.argv[0] = 'ctxsim';"  # as the command: without torch, which takes seconds
        "from ctxsim_hf.text.lexical import TfidfCosine; words = [f'{chr(97 + i)}' * 3 for i in range(26)];"
        "tfidf = TfidfCosine.from_sentences(' '.join(words[:i]) for i in range(26));"
        "print(tfidf.similarity([' '.join(words)] * 20, [' '.join(words[i:]) for i in range(20)]).tobytes().hex())"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True)
        for seed in "12"
    ]
    assert runs[0].stdout == runs[1].stdout != b""


def test_what_a_user_can_get_wrong(tmp_path: Path) -> None:
    tfidf = TfidfCosine.from_sentences(CORPUS)
    with pytest.raises(UserError, match="got 1 and 2"):
        tfidf.similarity(["a"], ["a", "b"])
    with pytest.raises(UserError, match="there are none"):
        TfidfCosine.from_sentences([])
    with pytest.raises(UserError, match=r"tfidf\.json"):
        TfidfCosine.load(tmp_path)
    tfidf.save(tmp_path)
    (tmp_path / "tfidf.json").write_text('{"sentences": 6, "words": 3}')
    with pytest.raises(UserError, match="are of format None, expected 3; make the folder again"):
        TfidfCosine.load(tmp_path)
    (tmp_path / "tfidf.json").write_text('{"format": 3, "sentences": 6, "words": 3, "ngrams": 5}')
    with pytest.raises(UserError, match=r"speaks of \{'words': 3, 'ngrams': 5\}, found \{'words': 11"):
        TfidfCosine.load(tmp_path)
