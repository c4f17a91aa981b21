"""Refuses what is no sentence, before it turns into a wrong number or another library's error."""

from collections.abc import Sequence

from ctxsim_hf.runtime.errors import UserError


def check_sentence(sentence: object, place: str) -> None:
    """Refuse anything but a string of whole characters; `place` is how the error names it."""
    if not isinstance(sentence, str):
        raise UserError(f"expected strings, but {place} is {sentence!r} ({type(sentence).__name__})")
    if not sentence.isascii() and any("\ud800" <= character <= "\udfff" for character in sentence):
        raise UserError(f"{place} holds half a character: {ascii(sentence)[:80]}")


def check_two_lists(sentences1: Sequence[str], sentences2: Sequence[str]) -> None:
    """Refuse what `similarity` cannot compare: a string for a list, and whatever in the lists is no sentence."""
    if isinstance(sentences1, str) or isinstance(sentences2, str):
        raise UserError("similarity takes two lists of sentences; got a string. Put it in a list")
    for side, sentences in enumerate((sentences1, sentences2), 1):
        for place, sentence in enumerate(sentences):
            check_sentence(sentence, f"sentence {place} of list {side}")


def check_pairs(sentences1: Sequence[str], sentences2: Sequence[str]) -> None:
    """`check_two_lists`, and the lists must be of one length."""
    check_two_lists(sentences1, sentences2)
    if len(sentences1) != len(sentences2):
        raise UserError(f"expected as many sentences on both sides, got {len(sentences1)} and {len(sentences2)}")
