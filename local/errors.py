"""What can go wrong around the local stack. `main` functions print these without a stack trace."""


class LocalError(Exception):
    """The base: its text is for the person at the terminal."""
