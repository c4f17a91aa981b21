"""A text -> its words in lower case. This is the only definition of a word in the package.

A word is a run of letters, digits and underscores, with the marks and joiners that follow them: vowels of Hindi,
accents of decomposed text. In scripts that are written without spaces, every two neighbouring characters of a run are
a word, as in Lucene's CJK analyzer, and so is a character on its own. This needs no dictionary, and most Chinese words
have two characters. Latin words and numbers within such text stay whole.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise

import regex

# Script extensions (scx) include letters that several scripts share, such as the long vowel mark of Japanese.
_SCRIPTS = r"\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_LETTER = rf"[[{_SCRIPTS}]&&[\p{{L}}\p{{Nl}}]]"
_CHARACTER = rf"{_LETTER}[\p{{M}}\p{{Join_Control}}]*"

_RUN = regex.compile(r"[\p{L}\p{N}_][\p{L}\p{N}_\p{M}\p{Join_Control}]*")
_PART = regex.compile(rf"(?:{_CHARACTER})+|(?:(?!{_LETTER}).)+", regex.V1)
_UNSPACED_CHARACTER = regex.compile(_CHARACTER, regex.V1)
_words_in, _parts_of, _characters_of = _RUN.findall, _PART.findall, _UNSPACED_CHARACTER.findall
# The Unicode blocks of these letters, and others between them: a cheap first test.
_find_unspaced = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\uabff\uf900-\uffff\U00011000-\U0003ffff]"
).search


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, in order."""
    found: list[str] = _words_in(text.lower())
    if text.isascii() or not _find_unspaced(text):
        return found
    return [word for run in found for part in _parts_of(run) for word in _split(part)]


def _split(part: str) -> Iterable[str]:
    """Return the character bigrams of a part that is written without spaces, and any other part whole."""
    characters = _characters_of(part)
    return map("".join, pairwise(characters)) if len(characters) > 1 else [part]


def word_spans(text: str, wanted: Collection[str]) -> list[tuple[int, int]]:
    """Return where wanted words, given in lower case, stand in a text: ordered spans that do not touch, since
    neighbouring bigrams of a script without spaces are joined."""
    spans: list[tuple[int, int]] = []
    for start, end in _all_spans(text):
        if text[start:end].lower() not in wanted:
            continue
        if spans and start <= spans[-1][1]:
            spans[-1] = spans[-1][0], end
        else:
            spans.append((start, end))
    return spans


def _all_spans(text: str) -> Iterator[tuple[int, int]]:
    for run in _RUN.finditer(text):
        for part in _PART.finditer(run[0]):
            base = run.start() + part.start()
            characters = [found.span() for found in _UNSPACED_CHARACTER.finditer(part[0])]
            if len(characters) > 1:
                yield from ((base + first[0], base + second[1]) for first, second in pairwise(characters))
            else:
                yield base, base + len(part[0])
