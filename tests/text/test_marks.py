"""Marks as the tokenizer's own template has them, whichever it is."""

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import TokenizersBackend

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.marks import Marks, PairMarks
from ctxsim_hf.text.tokenized import tokenize_sentences

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "c", "d"]
TEMPLATES = {
    "bert": ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"),
    "roberta": ("[CLS] $A [SEP]", "[CLS] $A [SEP] [SEP] $B [SEP]"),
    "xlnet": ("$A [SEP] [CLS]", "$A [SEP] $B:1 [SEP]:1 [CLS]:2"),
    "t5": ("$A [SEP]", "$A [SEP] $B [SEP]"),
    "none": ("$A", "$A $B"),
}
SENTENCES = ["a b c d", "c", "", "d a"]


def make_tokenizer(template: str, pad_token: str | None = "[PAD]") -> TokenizersBackend:
    tokenizer = Tokenizer(WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    single, pair = TEMPLATES[template]
    marks = [(mark, WORDS.index(mark)) for mark in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(single=single, pair=pair, special_tokens=marks)
    return TokenizersBackend(tokenizer_object=tokenizer, unk_token="[UNK]", pad_token=pad_token)


@pytest.mark.parametrize("template", TEMPLATES)
def test_sentences_are_framed_as_the_tokenizer_frames_them(template: str) -> None:
    tokenizer = make_tokenizer(template)
    marks, tokens = Marks.of(tokenizer), tokenize_sentences(tokenizer, SENTENCES)
    ids, mask = marks.frame(tokens, np.array([3, 0, 1, 2]), 100)
    wanted = tokenizer([SENTENCES[row] for row in (3, 0, 1, 2)], padding=True)
    assert ids.tolist() == wanted["input_ids"] and mask.tolist() == wanted["attention_mask"]
    ids, mask = marks.frame(tokens, np.array([0, 1]), 2)
    wanted = tokenizer(["a b", "c"], padding=True)
    assert ids.tolist() == wanted["input_ids"] and mask.tolist() == wanted["attention_mask"]


@pytest.mark.parametrize("template", TEMPLATES)
def test_pairs_are_framed_as_the_tokenizer_frames_them(template: str) -> None:
    tokenizer = make_tokenizer(template)
    ids, _ = PairMarks.of(tokenizer).frame([4, 5], [6, 7, 4])
    wanted = tokenizer("a b", "c d a", return_token_type_ids=True)
    assert ids == wanted["input_ids"] and len(ids) == 5 + PairMarks.of(tokenizer).size


@pytest.mark.parametrize("template", ["bert", "roberta"])
def test_token_types_of_pairs(template: str) -> None:
    tokenizer = make_tokenizer(template)
    tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    _, types = PairMarks.of(tokenizer).frame([4, 5], [6, 7, 4])
    assert types == tokenizer("a b", "c d a", return_token_type_ids=True)["token_type_ids"]


def test_without_marks_an_empty_sentence_is_padding() -> None:
    tokenizer = make_tokenizer("none")
    ids, mask = Marks.of(tokenizer).frame(tokenize_sentences(tokenizer, [""]), np.array([0]), 9)
    assert ids.tolist() == [[0]] and mask.tolist() == [[0]]


def test_a_tokenizer_without_a_pad_token_is_refused() -> None:
    with pytest.raises(UserError, match="expected a tokenizer with a pad token"):
        Marks.of(make_tokenizer("bert", pad_token=None))
