"""The text of a document -> runs of consecutive sentences, split by sentencex and some rules of our own.

Letters, case and punctuation are kept. White space is collapsed, since a line break inside a sentence means nothing;
between Chinese or Japanese characters it is removed. A paragraph ends at a blank line, and so does its last sentence.
Thai and Lao do not mark the ends of sentences: with `th` or `lo` as the language, a clause, which ends at a space, is
treated as a sentence.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import sentencex

from ctxsim_hf.text.reading import clean

_BLANK_LINE = re.compile(r"\n\s*\n")
_QUOTED = re.compile(r'"[^"]+"|“[^”]+”|\([^()]+\)|「[^「」]+」|『[^『』]+』|（[^（）]+）')
_OPENERS = "'‘\"“("
_NEVER_FIRST = (";", ",", ")", "）", "」", "』")
_WIDE_STOPS = ("。", "！", "？", "｡")  # no space follows them
_WIDE = "[\u2e80-\u2fff\u3001-\u9fff\uf900-\ufaff\uff01-\uff9f\U00020000-\U0003ffff]"
_BREAK_BETWEEN_WIDE = re.compile(rf"\n(?<={_WIDE}\n)(?={_WIDE})")  # a literal first is found fastest
_KHMER_STOP = re.compile("\u17d4 ?")  # unknown to sentencex
_SPACE_BETWEEN_THAI = re.compile("(?<=[\u0e00-\u0eff]) (?=[\u0e00-\u0eff])")  # or Lao
_SPACES_END_CLAUSES = ("th", "lo")
MIN_CLAUSE_CHARS = 20  # a shorter clause, such as a name, is joined to the next


@dataclass(frozen=True)
class Runs:
    """Runs of consecutive sentences. A sentence that is too long is left out and ends its run, so that no context
    spans the gap."""

    runs: list[list[str]]
    too_long: int  # sentences left out
    unprintable: int  # characters replaced by a space


def split_document(text: str, language: str, max_sentence_chars: int) -> Runs:
    """Split a document into runs of sentences of at most `max_sentence_chars` characters."""
    text, unprintable = clean(text)
    runs: list[list[str]] = [[]]
    too_long = 0
    for paragraph in _BLANK_LINE.split(text):
        for sentence in split_paragraph(paragraph, language):
            if len(sentence) > max_sentence_chars:
                too_long += 1
                runs.append([])
            else:
                runs[-1].append(sentence)
    return Runs([run for run in runs if run], too_long, unprintable)


def split_paragraph(paragraph: str, language: str) -> list[str]:
    """Split a paragraph into sentences. Joined, they are the paragraph except for its white space."""
    text = " ".join(_BREAK_BETWEEN_WIDE.sub("", paragraph).split())
    ends = {_before_opening_quote(text, end) for end in _ends(text, language)} | set(_ends_in_quotes(text, language))
    ends |= {stop.end() for stop in _KHMER_STOP.finditer(text)}
    if language in _SPACES_END_CLAUSES:
        ends |= set(_ends_of_clauses(text))
    cuts = [0, *sorted(end for end in ends if text[end : end + 1] not in _NEVER_FIRST), len(text)]
    return [sentence for start, end in pairwise(cuts) if (sentence := text[start:end].strip())]


def _ends(text: str, language: str) -> Iterator[int]:
    end = 0
    for segment in sentencex.segment(language, text):
        end += len(segment)
        yield end


def _before_opening_quote(text: str, end: int) -> int:
    """Move an end to before an opening quote: sentencex cuts `He left. "Why?` after it if quotes are unbalanced."""
    opening = text[end - 1 : end] in ('"', "“") and text[end - 2 : end - 1] == " " and text[end : end + 1] not in " "
    return end - 1 if opening else end


def _ends_in_quotes(text: str, language: str) -> Iterator[int]:
    """Yield the ends of sentences inside quotes and brackets, where sentencex never cuts: speech may be long."""
    for quoted in _QUOTED.finditer(text):
        inside = quoted.group()[1:-1]
        for end in _ends(inside, language):
            rest = inside[end : end + 2].lstrip(_OPENERS)
            if (inside[end - 1] == " " and rest[:1].isupper()) or (inside[end - 1] in _WIDE_STOPS and rest):
                yield quoted.start() + 1 + end


def _ends_of_clauses(text: str) -> Iterator[int]:
    start = 0
    for space in _SPACE_BETWEEN_THAI.finditer(text):
        if space.start() - start >= MIN_CLAUSE_CHARS:
            start = space.end()
            yield start
