"""Checks of input sentences, so that bad input does not become a wrong number or an error of another library."""

from collections.abc import Sequence

from ctxsim_hf.runtime.errors import UserError


def check_sentence(sentence: object, place: str) -> None:
    """Refuse anything but a string without lone surrogates; the error calls it `place`."""
    if not isinstance(sentence, str):
        raise UserError(f"expected strings, but {place} is {sentence!r} ({type(sentence).__name__})")
    if not sentence.isascii() and any("\ud800" <= character <= "\udfff" for character in sentence):
        raise UserError(f"expected Unicode text, but {place} holds a lone surrogate: {ascii(sentence)[:80]}")


def check_pairs(sentences1: Sequence[str], sentences2: Sequence[str]) -> None:
    """Refuse what `similarity` cannot compare: a string instead of a list, items that are no sentences, and lists of
    different lengths."""
    if isinstance(sentences1, str) or isinstance(sentences2, str):
        raise UserError("expected two lists of sentences, got a string; put it in a list")
    for side, sentences in enumerate((sentences1, sentences2), 1):
        for place, sentence in enumerate(sentences):
            check_sentence(sentence, f"sentence {place} of list {side}")
    if len(sentences1) != len(sentences2):
        raise UserError(f"expected two lists of the same length, got {len(sentences1)} and {len(sentences2)}")
