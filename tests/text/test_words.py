"""What a word is, in scripts with spaces and without; and that what is built on words works in all of them."""

import random
import sys
from pathlib import Path

import pytest
import regex
from made_up import make_text

from ctxsim_hf.evaluation.bm25 import Bm25
from ctxsim_hf.origin.tfidf_index import TfidfIndex
from ctxsim_hf.text.letters import LetterCosine
from ctxsim_hf.text.lexical import TfidfCosine
from ctxsim_hf.text.words import word_spans, words

WITHOUT_SPACES = {
    "Chinese": ["今天天气很好。", "我们去公园散步。", "图书馆里有很多书。"],
    "Japanese": ["コーヒーを飲みました。", "公園へ行きました。", "図書館は駅の前です。"],
    "Thai": ["วันนี้อากาศดีมาก", "เราไปเดินเล่นในสวน", "ห้องสมุดอยู่หน้าสถานี"],
    "Khmer": ["ខ្ញុំទៅផ្សារ។", "គាត់អានសៀវភៅ។", "ថ្ងៃនេះក្តៅណាស់។"],
    "Myanmar": ["ကျွန်တော်သွားသည်။", "သူစာဖတ်နေသည်။", "ဒီနေ့ပူတယ်။"],
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat's 2nd snake_case!", ["the", "cat", "s", "2nd", "snake_case"]),
        ("Кошка, naïve Straße", ["кошка", "naïve", "straße"]),
        ("नमस्ते cafe\u0301 می\u200cروم м\u02bcята", ["नमस्ते", "cafe\u0301", "می\u200cروم", "м\u02bcята"]),
        ("한국어 텍스트", ["한국어", "텍스트"]),
        ("今天天气。好", ["今天", "天天", "天气", "好"]),
        ("用Python写的3个程序", ["用", "python", "写的", "3", "个程", "程序"]),
        ("二〇二四年, 2024年", ["二〇", "〇二", "二四", "四年", "2024", "年"]),
        ("コーヒーと人々", ["コー", "ーヒ", "ヒー", "ーと", "と人", "人々"]),
        ("か\u3099くせい", ["か\u3099く", "くせ", "せい"]),
        ("葛\U000e0100飾", ["葛\U000e0100飾"]),
        ("ที่นี่ ๑๒๓", ["ที่นี่", "๑๒๓"]),
        ("", []),
        ("。、「」 …😀", []),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_texts_with_spaces_have_the_words_of_one_pattern() -> None:
    pattern = regex.compile(r"[\p{L}\p{N}_][\p{L}\p{N}_\p{M}\p{Join_Control}]*")
    chooser = random.Random(0)
    alphabets = [
        "abcXYZ019_ .,'’-",
        "äßéñ ğıİ“”–…",
        "абвЁє ʼ,",
        "αβς ",
        "कखिी्ँ ।",
        "אבג\u05b0 ",
        "عربي\u200c ",
        "한국어 ",
        "😀🎉 a",
    ]
    texts = ["".join(chooser.choices(alphabet, k=60)) for alphabet in alphabets for _ in range(50)]
    for text in [*texts, make_text(100, seed=0)]:
        assert words(text) == pattern.findall(text.lower())


def test_letters_of_scripts_without_spaces_are_all_found() -> None:
    """Every such letter of Unicode, between two others, makes two words of three."""
    letters = regex.compile(r"[[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]&&\p{L}]", regex.V1)
    found = letters.findall("".join(map(chr, range(0xD800))) + "".join(map(chr, range(0xE000, sys.maxunicode + 1))))
    assert len(found) > 90_000
    assert all(words(letter * 3) == [letter * 2] * 2 for letter in found)


@pytest.mark.parametrize("language", WITHOUT_SPACES)
def test_what_is_built_on_words(language: str, tmp_path: Path) -> None:
    sentences = WITHOUT_SPACES[language]
    counts = TfidfCosine.from_sentences([*sentences, "x", "y"])
    for system in (counts, LetterCosine(counts), Bm25(counts)):
        assert system.similarity(sentences, sentences) == pytest.approx([1, 1, 1])
        assert (system.similarity(sentences, [*sentences[1:], sentences[0]]) < 0.5).all()
        assert (system.similarity([" ".join(sentences)] * 3, sentences) > 0.3).all()
    index = TfidfIndex.build([[sentence] for sentence in sentences], tmp_path / "index")
    for number, (found, scores) in enumerate(index.search(sentences, 3)):
        assert found[0] == number and scores[0] == pytest.approx(1)


@pytest.mark.parametrize(
    ("text", "wanted", "marked"),
    [
        ("The CAT, the cat's mat.", {"cat", "mat"}, ["CAT", "cat", "mat"]),
        ("concatenate the cat", {"cat"}, ["cat"]),
        ("東京都に住む", {"東京", "京都", "住む"}, ["東京都", "住む"]),  # bigrams that overlap are one span
        ("no such word", {"cat"}, []),
    ],
)
def test_spans_of_wanted_words(text: str, wanted: set[str], marked: list[str]) -> None:
    assert [text[start:end] for start, end in word_spans(text, wanted)] == marked
    assert wanted >= {text[start:end].lower() for start, end in word_spans(text, wanted)} or not text.isascii()
