"""Sentence splitting: nothing lost, speech and brackets opened, over-long sentences left out with the gap marked."""

import pytest
from made_up import make_text

from ctxsim_hf.text.sentences import split_document, split_paragraph


@pytest.mark.parametrize(
    ("paragraph", "sentences"),
    [
        ("It rained. We stayed in.", ["It rained.", "We stayed in."]),
        ("Mr. J. R. Smith of the U.S. Army left.", ["Mr. J. R. Smith of the U.S. Army left."]),
        ("One line\n of a paragraph\twrapped. Two.", ["One line of a paragraph wrapped.", "Two."]),
        ('He said, "I went. She stayed." Then he left.', ['He said, "I went.', 'She stayed."', "Then he left."]),
        ('"Stop!" he cried. "Why?"', ['"Stop!" he cried.', '"Why?"']),
        ("A note (see above. It is long.) ends here. Yes.", ["A note (see above.", "It is long.) ends here.", "Yes."]),
        ("Good morning 😀. Good night 🌙.", ["Good morning 😀.", "Good night 🌙."]),
        ("no end", ["no end"]),
        ("   ", []),
        ("", []),
    ],
)
def test_paragraphs(paragraph: str, sentences: list[str]) -> None:
    assert split_paragraph(paragraph, "en") == sentences


@pytest.mark.parametrize(
    ("language", "paragraph", "sentences"),
    [
        ("zh", "今天很好。我们去散步！你来吗？来", ["今天很好。", "我们去散步！", "你来吗？", "来"]),
        ("zh", "我们去\n公园 \n散步。\n好。", ["我们去公园散步。", "好。"]),
        ("zh", "用\nPython\n写", ["用 Python 写"]),
        ("zh", "他说：“我走了。她留下。”然后离开。", ["他说：“我走了。", "她留下。”", "然后离开。"]),
        ("zh", "注（这很长。真的。）完了。", ["注（这很长。", "真的。）完了。"]),
        ("ja", "彼は「行くよ。待って。」と言った。次。", ["彼は「行くよ。", "待って。」", "と言った。", "次。"]),
        ("ja", "『行くよ。待って。』と言った。", ["『行くよ。", "待って。』と言った。"]),
        ("km", "ខ្ញុំទៅ។ គាត់មក។ល្អ", ["ខ្ញុំទៅ។", "គាត់មក។", "ល្អ"]),
        ("my", "ကျွန်တော်သွားသည်။သူလာသည်။", ["ကျွန်တော်သွားသည်။", "သူလာသည်။"]),
        ("th", "วันนี้อากาศดีมากจริงๆ เราไปเดินเล่นที่สวนกัน", ["วันนี้อากาศดีมากจริงๆ", "เราไปเดินเล่นที่สวนกัน"]),
        ("th", "นายสมชาย ใจดีไปเที่ยวทะเล กับ 3 คนและ John ด้วย", ["นายสมชาย ใจดีไปเที่ยวทะเล", "กับ 3 คนและ John ด้วย"]),
        ("en", "วันนี้อากาศดีมากจริงๆ เราไปเดินเล่นที่สวนกัน", ["วันนี้อากาศดีมากจริงๆ เราไปเดินเล่นที่สวนกัน"]),
    ],
)
def test_paragraphs_without_spaces(language: str, paragraph: str, sentences: list[str]) -> None:
    assert split_paragraph(paragraph, language) == sentences


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_lost(seed: int) -> None:
    text = make_text(30, seed).replace("a ", ' "').replace("e ", ") (").replace("o ", ".” “")
    joined = "".join("".join(sentence.split()) for run in split_document(text, "en", 10_000).runs for sentence in run)
    assert joined == "".join(text.split())


def test_an_overlong_sentence_ends_the_run() -> None:
    document = split_document(f"Short one. Short two.\n\n{'x' * 50}.\n\nShort three.", "en", 40)
    assert document.runs == [["Short one.", "Short two."], ["Short three."]]
    assert document.too_long == 1


def test_control_characters_become_spaces_and_are_counted() -> None:
    document = split_document("One\x00two.\x1b Three\ud800 four.\r\nFive.", "en", 100)
    assert document.runs == [["One two.", "Three four.", "Five."]]
    assert document.unprintable == 3
