"""A text -> its words, in lower case: the one place that says what a word is.

A word is a run of letters, digits and underscores, with the marks and joiners that follow them: vowels of Hindi,
accents of decomposed text. In scripts that are written without spaces, every two neighbouring characters of a run are
a word, as in Lucene's CJK analyzer, and a character on its own is one too. This needs no dictionary, and the most
common length of a Chinese word is two characters. Latin words and numbers within such text stay whole.
"""

import re
from collections.abc import Iterable
from itertools import pairwise

import regex

# Script extensions (scx), where scripts share letters that belong to none of them: the long vowel of Japanese.
_SCRIPTS = r"\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_LETTER = rf"[[{_SCRIPTS}]&&[\p{{L}}\p{{Nl}}]]"
_CHARACTER = rf"{_LETTER}[\p{{M}}\p{{Join_Control}}]*"

_words_in = regex.compile(r"[\p{L}\p{N}_][\p{L}\p{N}_\p{M}\p{Join_Control}]*").findall
_parts_of = regex.compile(rf"(?:{_CHARACTER})+|(?:(?!{_LETTER}).)+", regex.V1).findall
_characters_of = regex.compile(_CHARACTER, regex.V1).findall
# The blocks that hold these letters, and others between them: a first look that costs next to nothing.
_look_for_unspaced = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\uabff\uf900-\uffff\U00011000-\U0003ffff]"
).search


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, in order."""
    found: list[str] = _words_in(text.lower())
    if text.isascii() or not _look_for_unspaced(text):
        return found
    return [word for run in found for part in _parts_of(run) for word in _split(part)]


def _split(part: str) -> Iterable[str]:
    """Return every two neighbouring characters of a part that is written without spaces, any other part whole."""
    characters = _characters_of(part)
    return map("".join, pairwise(characters)) if len(characters) > 1 else [part]
