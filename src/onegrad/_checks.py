"""Argument checks: every refusal reads "<argument> must be <allowed>, got <value>"."""

import difflib
import math
import numbers
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from onegrad.errors import InputError

# What a user may write for a vector, or for a list of vectors. Nouns store tuples.
Vector = Sequence[float] | np.ndarray
Vectors = Sequence[Vector] | np.ndarray


def refuse(name: str, allowed: str, value: Any, remedy: str = "") -> InputError:
    """The one sentence template. Returned, not raised, so that the caller's `raise` is visible."""
    return InputError(f"{name} must be {allowed}, got {value!r}" + (f"; {remedy}" if remedy else ""))


def integer(name: str, value: Any, at_least: int = 1) -> int:
    allowed = f"an integer ≥ {at_least}"
    if isinstance(value, bool):
        raise refuse(name, allowed, value)
    try:
        number = operator.index(value)
    except TypeError:
        raise refuse(name, allowed, value) from None
    if number < at_least:
        raise refuse(name, allowed, value)
    return number


def real(name: str, value: Any) -> float:
    """A finite float; -0.0 becomes 0.0 so that equal problems have equal JSON."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise refuse(name, "a finite number", value)
    number = float(value)
    if not math.isfinite(number):
        raise refuse(name, "a finite number", value)
    return number + 0.0


def positive(name: str, value: Any) -> float:
    number = _comparable(name, value, "> 0")
    if not number > 0:
        raise refuse(name, "> 0", value)
    return number


def non_negative(name: str, value: Any) -> float:
    number = _comparable(name, value, "≥ 0")
    if not number >= 0:
        raise refuse(name, "≥ 0", value)
    return number


def within(name: str, value: Any, low: float, high: float) -> float:
    allowed = f"in [{low:g}, {high:g}]"
    number = _comparable(name, value, allowed)
    if not low <= number <= high:
        raise refuse(name, allowed, value)
    return number


def reals(name: str, values: Any) -> tuple[float, ...]:
    """A vector of finite floats, as a tuple."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise refuse(name, "a list of numbers", values)
    return tuple(real(f"{name}[{i}]", value) for i, value in enumerate(values))


def rows(name: str, values: Any) -> tuple[tuple[float, ...], ...]:
    """A list of vectors, as a tuple of tuples."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise refuse(name, "a list of lists of numbers", values)
    return tuple(reals(f"{name}[{i}]", row) for i, row in enumerate(values))


def choice(name: str, value: Any, allowed: Sequence[Any]) -> Any:
    if value not in allowed:
        listed = ", ".join(repr(option) for option in allowed)
        raise refuse(name, f"one of {listed}", value, did_you_mean(str(value), allowed))
    return value


def did_you_mean(word: str, known: Iterable[Any]) -> str:
    """'did you mean "ridge"?', or nothing when no known word is near."""
    near = difflib.get_close_matches(word, [str(option) for option in known], n=1, cutoff=0.5)
    return f'did you mean "{near[0]}"?' if near else ""


def known_keys(where: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse keys that nothing would read: a misspelt setting must not be ignored."""
    known = tuple(known)
    for key in given:
        if key not in known:
            hint = did_you_mean(key, known) or f"known keys: {', '.join(known)}"
            raise InputError(f'unknown key "{key}" in {where}; {hint}')


def _comparable(name: str, value: Any, allowed: str) -> float:
    try:
        return real(name, value)
    except InputError:
        raise refuse(name, allowed, value) from None
