"""The exception for mistakes that the user can fix."""

import sys


class UserError(Exception):
    """An error that the user can fix: bad input, bad arguments, a full disk.

    The message says what was expected, what came, and what to do. The command line prints it as one line and exits
    with code 2. It never shows the token of the Hub, whatever a server answered.
    """

    def __init__(self, message: str) -> None:
        super().__init__(without_token(message))


def without_token(text: str) -> str:
    """Return a text without the token of the Hub, which a client can only have sent if it is loaded."""
    hub = sys.modules.get("huggingface_hub")
    token = hub.get_token() if hub is not None else None
    return text.replace(token, "***") if token else text
