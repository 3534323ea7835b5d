"""The two kinds of failure a user can cause; the command line turns each into one sentence and an exit code."""


class UsageError(ValueError):
    """What was asked for cannot be done as asked: exit code 2."""


class RunError(RuntimeError):
    """What was asked for went wrong on the way (a damaged file, a full disk, a diverging loss): exit code 1."""
