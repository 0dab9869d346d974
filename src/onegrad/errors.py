"""The few ways onegrad can fail, one for each exit code of the command line.

0 ok, 1 bug, 2 bad input, 3 numerical failure, 4 finished with failed points, 5 refused,
130 interrupted, 143 terminated
"""


class OnegradError(Exception):
    """Base of every error that onegrad raises on purpose."""

    exit_code = 1


class InputError(OnegradError, ValueError):
    """An argument is wrong. The message names it, says what came and what is allowed."""

    exit_code = 2


class NumericalError(OnegradError, ArithmeticError):
    """A computation did not reach a number that can be trusted. The message says what to try."""

    exit_code = 3


class RefusedError(OnegradError, RuntimeError):
    """The work cannot be done here: not enough memory, no such device, a missing extra."""

    exit_code = 5


class AccuracyWarning(UserWarning):
    """A number is usable but less accurate than onegrad usually promises."""
