"""The cosine of words' letters: by hand, by brute force, the same in any company and any process."""

import math
import os
import random
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.letter_ngrams import count_ngrams, letter_ngrams
from ctxsim_hf.text.letters import LetterCosine, letter_vectors
from ctxsim_hf.text.lexical import TfidfCosine

CORPUS = ["he plays", "she played a game", "they play the game", "the end", "no more", "at all"]


@pytest.fixture(scope="module")
def letters() -> LetterCosine:
    return LetterCosine(TfidfCosine.from_sentences(CORPUS))


def test_ngrams_of_a_word_with_its_ends() -> None:
    assert letter_ngrams(" cat ") == {" c", "ca", "at", "t ", " ca", "cat", "at ", " cat", "cat "}
    assert letter_ngrams("a") == {"a"} and letter_ngrams(" a ") == {" a", "a ", " a "}


def test_ngrams_count_as_often_as_their_words() -> None:
    counts = count_ngrams({"at": 2, "cat": 3})
    assert counts["at"] == counts["t "] == 5 and counts[" at"] == 2 and counts["cat"] == 3


def test_cosines_of_words_by_hand(letters: LetterCosine) -> None:
    # " at " has " a", "at", "t ", " at", "at ", " at ", and shares " a" with " a ": "a", "at" and "all" begin with it.
    # "a " and "t " end one word each, "at" stands in that one, and nothing else of the two in any other word.
    common, once = math.log(6 / 3), math.log(6)
    a, at = math.hypot(common, once, once), math.sqrt(common**2 + 5 * once**2)
    found = letters.similarity(["a", "a", "a"], ["a", "at", "x"])
    assert found == pytest.approx([1, common**2 / (a * at), 0])


def test_in_a_long_text_rare_words_weigh_more(letters: LetterCosine) -> None:
    filler = " ".join(f"x{number}y" for number in range(60))

    def share(text: str) -> float:
        """How much more "unheard", of idf 14, weighs than "game", of idf ln 2."""
        rare, frequent = letters.similarity([text, text], ["unheard", "game"])
        return float(rare / frequent)

    assert share(f"unheard game {filler}") > share("unheard game") * 1.3


def test_in_a_long_text_repeated_words_weigh_more(letters: LetterCosine) -> None:
    filler = " ".join(f"x{number}y" for number in range(60))

    def share(text: str) -> float:
        """How much more "unheard" weighs than "unseen", of the same idf."""
        first, second = letters.similarity([text, text], ["unheard", "unseen"])
        return float(first / second)

    repeated = "unheard unheard unheard unseen"
    assert share(repeated) == pytest.approx(share("unheard unseen"))
    assert share(f"{repeated} {filler}") > share(f"unheard unseen {filler}") * 1.5


def test_forms_of_a_word_are_alike() -> None:
    # In a corpus where "play" is no more frequent than in any other.
    letters = LetterCosine(TfidfCosine.from_sentences([*CORPUS, *(f"some other {n} words" for n in range(50))]))
    forms, strangers = letters.similarity(["he plays", "he plays"], ["he played", "he runs"])
    assert letters.counts.similarity(["he plays"], ["he played"])[0] < forms - 0.2
    assert forms > strangers + 0.2


def test_cosines_by_brute_force(letters: LetterCosine) -> None:
    chooser = random.Random(0)
    words = ["play", "plays", "played", "game", "games", "the", "a", "7", "77", "naïve", "end"]
    first, second = ([" ".join(chooser.choices(words, k=chooser.randint(1, 6))) for _ in range(100)] for _ in range(2))

    def ngram_idf(ngram: str) -> float:
        count = sum(ngram in letter_ngrams(f" {word} ") for sentence in CORPUS for word in sentence.split())
        return max(0.05, math.log(len(CORPUS) / max(1, count)))

    def vector(sentence: str) -> Counter[str]:
        summed: Counter[str] = Counter()
        for word in set(sentence.split()):
            found = {ngram: ngram_idf(ngram) for ngram in letter_ngrams(f" {word} ")}
            length = math.sqrt(sum(weight**2 for weight in found.values()))
            for ngram, weight in found.items():
                summed[ngram] += float(letters.counts.idf([word])[0]) ** 0.75 * weight / length  # type: ignore[assignment]
        return summed

    def cosine(one: Counter[str], other: Counter[str]) -> float:
        product = sum(one[ngram] * other[ngram] for ngram in one)
        return product / math.sqrt(sum(x * x for x in one.values()) * sum(x * x for x in other.values()))

    expected = [cosine(vector(a), vector(b)) for a, b in zip(first, second, strict=True)]
    assert len(set(np.round(expected, 6))) > 50
    assert letters.similarity(first, second) == pytest.approx(expected)


def test_vectors_have_length_1(letters: LetterCosine) -> None:
    vectors = letter_vectors([" cat ", "s ", " a ", " cat "], letters.counts)
    assert np.asarray((vectors * vectors).sum(axis=1)) == pytest.approx([1, 1, 1, 1])
    assert (vectors[[0]] != vectors[[3]]).nnz == 0


def test_without_words_the_similarity_is_0(letters: LetterCosine) -> None:
    without = ["", "  ", "?!", "😀", "\x00"]
    assert not letters.similarity(without, without).any()
    assert not letters.similarity(without, ["he plays"] * len(without)).any()
    assert letters.similarity([], []).shape == (0,)


def test_a_pair_does_not_depend_on_its_company(letters: LetterCosine, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = ["he plays a game", "all 7", "odd new words"], ["she played", "7 games at the end", "new words"]
    alone = [letters.similarity([a], [b])[0] for a, b in zip(first, second, strict=True)]
    assert letters.similarity(first, second).tolist() == alone
    monkeypatch.setattr("ctxsim_hf.text.letters.PAIRS_PER_BLOCK", 2)
    assert letters.similarity(first, second).tolist() == alone


def test_as_many_second_sentences_as_first(letters: LetterCosine) -> None:
    with pytest.raises(UserError, match="got 1 and 2"):
        letters.similarity(["a"], ["a", "b"])


def test_the_same_bits_in_another_process() -> None:
    code = (
        "import sys; sys.argv[0] = 'ctxsim';"  # as the command: without torch, which takes seconds
        "from ctxsim_hf.text.letters import LetterCosine; from ctxsim_hf.text.lexical import TfidfCosine;"
        "words = [chr(97 + i) * 2 + chr(98 + i) * 3 for i in range(20)];"
        "letters = LetterCosine(TfidfCosine.from_sentences(' '.join(words[:i]) for i in range(20)));"
        "print(letters.similarity([' '.join(words)] * 20, [' '.join(words[i:]) for i in range(20)]).tobytes().hex())"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True)
        for seed in "12"
    ]
    assert runs[0].stdout == runs[1].stdout != b""
