"""Argument checks that put the argument's own name into the message.

Call them with the argument as a keyword: ``epsilon = validate.positive(epsilon=epsilon)``.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from tulle.core.errors import InputError, raise_alone
from tulle.core.exact import rational


def _single(named: dict[str, Any]) -> tuple[str, Any]:
    ((name, value),) = named.items()
    return name, value


def number(**named: Any) -> Fraction:
    """Return the one keyword's value as an exact fraction."""
    name, value = _single(named)
    try:
        return rational(value)
    except (ValueError, TypeError) as error:
        raise_alone(InputError(f"{name} must be a finite number; got {value!r} ({error})."))


def positive(**named: Any) -> Fraction:
    """Return the one keyword's value as a fraction above zero."""
    name, value = _single(named)
    result = number(**named)
    if result <= 0:
        raise InputError(f"{name} must be above zero; got {value!r}.")
    return result


LEAST_EPSILON = Fraction(1, 10**9)
MOST_EPSILON = Fraction(10**4)


def epsilon(**named: Any) -> Fraction:
    """Return the one keyword's value as an epsilon that can be spent.

    Beyond the limits nothing useful is private or accurate, and numbers get absurdly long.
    """
    name, value = _single(named)
    result = positive(**named)
    if not LEAST_EPSILON <= result <= MOST_EPSILON:
        raise InputError(
            f"{name} must be at least {float(LEAST_EPSILON):g} and at most {int(MOST_EPSILON):,}; "
            f"got {value!r}."
        )
    return result


def non_negative(**named: Any) -> Fraction:
    """Return the one keyword's value as a fraction of at least zero."""
    name, value = _single(named)
    result = number(**named)
    if result < 0:
        raise InputError(f"{name} must not be negative; got {value!r}.")
    return result


def probability(**named: Any) -> Fraction:
    """Return the one keyword's value as a fraction strictly between zero and one."""
    name, value = _single(named)
    result = number(**named)
    if not 0 < result < 1:
        raise InputError(f"{name} must lie strictly between 0 and 1; got {value!r}.")
    return result


def delta(**named: Any) -> Fraction:
    """Return the one keyword's value as a fraction in [0, 1)."""
    name, value = _single(named)
    result = number(**named)
    if not 0 <= result < 1:
        raise InputError(f"{name} must be at least 0 and below 1; got {value!r}.")
    return result


def whole(*, at_least: int, **named: Any) -> int:
    """Return the one keyword's value as an int of at least ``at_least``."""
    name, value = _single(named)
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InputError(f"{name} must be a whole number; got {value!r}.")
    result = int(value.__index__())
    if result < at_least:
        raise InputError(f"{name} must be at least {at_least}; got {value!r}.")
    return result


def meant(word: Any, known: Iterable[str]) -> str:
    """Return " Did you mean ...?" when a word is close to a known one, else nothing.

    Example:
        >>> meant("trianglez", ["edges", "triangles"]), meant("magic", ["edges"])
        (" Did you mean 'triangles'?", '')
    """
    from difflib import get_close_matches

    close = get_close_matches(str(word), list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
