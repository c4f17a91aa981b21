"""What a user can get wrong."""


class UserError(Exception):
    """Something the user can mend: input, arguments, disk space. The command line prints it as one plain line and
    exits with code 2; the message says what was expected, what came, and what to do."""
