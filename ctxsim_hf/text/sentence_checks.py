"""Checks of input sentences, so that bad input does not become a wrong number or an error of another library."""

from collections.abc import Iterable, Mapping

from ctxsim_hf.runtime.errors import UserError


def check_sentence(sentence: object, place: str) -> None:
    """Refuse anything but a string without lone surrogates; the error calls it `place`."""
    if not isinstance(sentence, str):
        raise UserError(f"expected strings, but {place} is {sentence!r} ({type(sentence).__name__})")
    if not sentence.isascii() and any("\ud800" <= character <= "\udfff" for character in sentence):
        raise UserError(f"expected Unicode text, but {place} holds a lone surrogate: {ascii(sentence)[:80]}")


def check_sentences(sentences: Iterable[str], what: str = "a list of sentences") -> Iterable[str]:
    """Refuse anything but an iterable of sentences; a string is one, of its letters, and is refused too."""
    if isinstance(sentences, str | bytes | Mapping) or not isinstance(sentences, Iterable):
        got = "a string; put it in a list" if isinstance(sentences, str) else f"{sentences!r}"[:80]
        raise UserError(f"expected {what}, got {got}")
    return sentences


def check_pairs(sentences1: Iterable[str], sentences2: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return two lists of sentences to compare, which may come from any iterables.

    Refuse what `similarity` cannot compare: a string instead of a list, items that are no sentences, and lists of
    different lengths.
    """
    first, second = (list(check_sentences(side, "two lists of sentences")) for side in (sentences1, sentences2))
    for side, sentences in enumerate((first, second), 1):
        for place, sentence in enumerate(sentences):
            check_sentence(sentence, f"sentence {place} of list {side}")
    if len(first) != len(second):
        raise UserError(f"expected two lists of the same length, got {len(first)} and {len(second)}")
    return first, second
