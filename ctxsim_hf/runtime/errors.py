"""The exception for mistakes that the user can fix."""


class UserError(Exception):
    """An error that the user can fix: bad input, bad arguments, a full disk.

    The message says what was expected, what came, and what to do. The command line prints it as one line and exits
    with code 2.
    """
