"""Checks shared by the configurations of context models. A bad value raises a `ValueError`."""


def expect_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Check that a value is one of the choices."""
    if value not in choices:
        raise ValueError(f"`{name}` must be one of {', '.join(map(repr, choices))}, got {value!r}.")


def expect_at_least(minimum: int, **values: float | None) -> None:
    """Check that each value is at least the minimum."""
    for name, value in values.items():
        if value is None or not value >= minimum:  # not `<`, which nan would pass
            raise ValueError(f"`{name}` must be at least {minimum}, got {value!r}.")


def expect_probability(**values: float | None) -> None:
    """Check that each value is at least 0 and below 1."""
    for name, value in values.items():
        if value is None or not 0 <= value < 1:
            raise ValueError(f"`{name}` must be at least 0 and below 1, got {value!r}.")


def expect_token_ids(vocab_size: int, **ids: int | list[int] | None) -> None:
    """Check that each id is in the vocabulary."""
    for name, token_id in ids.items():
        if not isinstance(token_id, int) or not 0 <= token_id < vocab_size:
            raise ValueError(f"`{name}` must be an id from 0 to vocab_size - 1 = {vocab_size - 1}, got {token_id!r}.")
