"""The two kinds of error that the command line turns into an exit status."""


class UserError(Exception):
    """Something the person at the terminal can mend; the message says what and how. Exit status 2."""


class InfrastructureError(Exception):
    """A server, simulator or disk failed; never the model's fault."""
