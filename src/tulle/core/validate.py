"""Numbers as users write them: read exactly, checked, and rounded outwards where a float is needed.

A user who writes ``0.1`` means one tenth. :func:`rational` therefore reads a float as the decimal
that it prints, so that ten questions at 0.1 cost exactly 1. Everything that is priced or sampled
afterwards uses that fraction; no float addition can understate what was spent.

Checks put the argument's own name into the message. Call them with the argument as a keyword:
``epsilon = validate.positive(epsilon=epsilon)``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from operator import index
from typing import Any, SupportsFloat

from tulle.core.errors import InputError, raise_alone

Number = int | float | str | Fraction | Decimal | SupportsFloat

_EXPONENT_LIMIT = 400
"""Decimal exponents beyond this are refused: they would make fractions of absurd length."""


def rational(value: Number) -> Fraction:
    """Return the exact fraction that ``value`` denotes; floats denote the decimal they print.

    Raises:
        ValueError: when ``value`` is not a finite number.

    Example:
        >>> rational(0.1) * 10
        Fraction(1, 1)
    """
    if isinstance(value, bool) or getattr(getattr(value, "dtype", None), "kind", "") == "b":
        raise ValueError("a truth value is not a number")
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError(f"{value} is not finite")
        return _bounded_decimal(value)
    if isinstance(value, str):
        return _parse(value)
    if isinstance(value, Real) or hasattr(value, "__float__"):
        number = float(value)
        if not math.isfinite(number):
            raise ValueError(f"{number} is not finite")
        return Fraction(repr(number))
    raise ValueError(f"{type(value).__name__} is not a number")


def _parse(text: str) -> Fraction:
    stripped = text.strip()
    if "/" in stripped:
        top, _, bottom = stripped.partition("/")
        if int(bottom) == 0:
            raise ValueError(f"{text!r} divides by zero")
        return Fraction(int(top), int(bottom))
    try:
        decimal = Decimal(stripped)
    except ArithmeticError:
        raise_alone(ValueError(f"{text!r} is not a number"))
    if not decimal.is_finite():
        raise ValueError(f"{text} is not finite")
    return _bounded_decimal(decimal)


def _bounded_decimal(value: Decimal) -> Fraction:
    if value and abs(value.adjusted()) > _EXPONENT_LIMIT:
        raise ValueError(f"{value} is out of range")
    return Fraction(value)


def text(value: Fraction) -> str:
    """Write a fraction so that :func:`rational` reads it back exactly.

    Example:
        >>> text(Fraction(1, 10)), text(Fraction(1, 3))
        ('0.1', '1/3')
    """
    short = repr(float(value)) if abs(value) < 2**1000 else ""
    if short and Fraction(short) == value:
        return short.removesuffix(".0")
    return f"{value.numerator}/{value.denominator}"


def round_up(value: Fraction) -> float:
    """Return the smallest float that is at least ``value`` (infinity if none is finite)."""
    return -round_down(-value)


def round_down(value: Fraction) -> float:
    """Return the largest float that is at most ``value`` (minus infinity if none is finite)."""
    try:
        nearest = value.numerator / value.denominator
    except OverflowError:
        return math.nextafter(math.inf, 0.0) if value > 0 else -math.inf
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def widen_up(value: float, ulps: int = 4) -> float:
    """Move a computed float up by some units in the last place, to cover rounding in its making."""
    for _ in range(ulps):
        value = math.nextafter(value, math.inf)
    return value


def short_up(value: Fraction) -> Fraction:
    """Round up to thirty binary digits, so that what is computed with it stays short."""
    mantissa, exponent = math.frexp(round_up(value))
    return Fraction(math.ceil(math.ldexp(mantissa, 30))) * Fraction(2) ** (exponent - 30)


def whole_number(text: str) -> int | None:
    """Return the whole number that a text is, of at most 18 digits; None when it is none.

    Example:
        >>> whole_number(" 12 "), whole_number("²"), whole_number("9" * 5000)
        (12, None, None)
    """
    bare = text.strip()
    return int(bare) if bare.isascii() and bare.isdigit() and len(bare) <= 18 else None


_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""What moves a cursor, sets a title or a clipboard, or turns the order of letters around."""


def visible(text: str) -> str:
    """Return text that commands no terminal, whoever chose it: such letters become escapes.

    Example:
        >>> print(visible("\\x1b[2Jann"))
        \\u001b[2Jann
    """
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def today() -> str:
    """Return the day in UTC, which is all that is told of when something was released or booked.

    Times of two entries of a ledger would tell how long the answer between them took.
    """
    return datetime.now(UTC).date().isoformat()


# --- checks of arguments ----------------------------------------------------------------------


def _single(named: dict[str, Any]) -> tuple[str, Any]:
    ((name, value),) = named.items()
    return name, value


LONGEST = 80
"""So many characters of what was given are shown in an error."""

MOST_BITS = 2**16
"""Numerators and denominators of arguments are no longer: prices are added up at their length."""


def shown(value: Any) -> str:
    """Write what was given, cut where it is long.

    Example:
        >>> shown("abc"), shown(-(10**5000)), len(shown("9" * 5000))
        ("'abc'", 'a number of 16,610 binary digits', 80)
    """
    try:
        written = repr(value)
    except ValueError:  # Python does not write whole numbers of more than 4,300 digits
        return _short(value) if isinstance(value, int) else type(value).__name__
    return written if len(written) <= LONGEST else f"{written[: LONGEST - 3]}..."


def _short(number: int) -> str:
    """Write a whole number; a very long one by the number of its binary digits."""
    bits = number.bit_length()
    return f"{number:,}" if bits < 100 else f"a number of {bits:,} binary digits"


def number(*, at_most: int | None = 2**1000, **named: Any) -> Fraction:
    """Return the one keyword's value as an exact fraction; ``at_most`` bounds its size."""
    name, value = _single(named)
    try:
        result = rational(value)
    except (ValueError, TypeError) as error:
        why = "" if len(str(error)) > LONGEST else f" ({error})"
        raise_alone(InputError(f"{name} must be a finite number; got {shown(value)}{why}."))
    if at_most is not None and abs(result) > at_most:
        size = _short(math.floor(abs(result)))
        raise InputError(f"{name} must be at most {_short(at_most)}; got {size}.")
    if at_most is not None and result.denominator.bit_length() > MOST_BITS:
        raise InputError(f"{name} must have at most {MOST_BITS:,} binary digits; round it.")
    return result


def positive(*, at_most: int | None = 2**1000, **named: Any) -> Fraction:
    """Return the one keyword's value as a fraction above zero."""
    name, value = _single(named)
    result = number(at_most=at_most, **named)
    if result <= 0:
        raise InputError(f"{name} must be above zero; got {shown(value)}.")
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
            f"got {shown(value)}."
        )
    return result


def non_negative(*, at_most: int | None = 2**1000, **named: Any) -> Fraction:
    """Return the one keyword's value as a fraction of at least zero."""
    name, value = _single(named)
    result = number(at_most=at_most, **named)
    if result < 0:
        raise InputError(f"{name} must not be negative; got {shown(value)}.")
    return result


def probability(**named: Any) -> Fraction:
    """Return the one keyword's value as a fraction strictly between zero and one."""
    name, value = _single(named)
    result = number(**named)
    if not 0 < result < 1:
        raise InputError(f"{name} must lie strictly between 0 and 1; got {shown(value)}.")
    return result


MOST_DELTA = 1 - Fraction(1, 10**9)
"""Nearer to one nothing is promised, and logarithms lose their digits."""


def delta(*, above_zero: bool = False, **named: Any) -> Fraction:
    """Return the one keyword's value as a delta that can be spent."""
    name, value = _single(named)
    result = number(**named)
    if not 0 <= result <= MOST_DELTA or (above_zero and not result):
        least = "above" if above_zero else "at least"
        raise InputError(
            f"{name} must be {least} 0 and at most {float(MOST_DELTA)}; got {shown(value)}."
        )
    return result


LEAST_SHARE = Fraction(1, 10_000)
"""A part of epsilon is no smaller: its noise would drown everything, or could not be drawn."""


def share(*, or_none: bool = False, **named: Any) -> Fraction:
    """Return the one keyword's value as a part of epsilon that leaves another part."""
    name, value = _single(named)
    result = number(**named)
    if not LEAST_SHARE <= result <= 1 - LEAST_SHARE and not (or_none and result == 0):
        least = f"{'0, or ' if or_none else ''}at least {float(LEAST_SHARE)}"
        raise InputError(
            f"{name} is a part of epsilon: it must be {least} and at most "
            f"{float(1 - LEAST_SHARE)}; got {shown(value)}."
        )
    return result


MOST = 2**53
"""No number of things is larger, unless its argument says otherwise."""


def whole(*, at_least: int, at_most: int | None = MOST, **named: Any) -> int:
    """Return the one keyword's value as an int within its limits; None is no limit above."""
    name, value = _single(named)
    try:
        if isinstance(value, bool):
            raise TypeError
        result = int(index(value))
    except TypeError:  # also arrays, which have an index only when they hold one number
        raise_alone(InputError(f"{name} must be a whole number; got {shown(value)}."))
    if result < at_least:
        raise InputError(f"{name} must be at least {at_least}; got {shown(value)}.")
    if at_most is not None and result > at_most:
        raise InputError(f"{name} must be at most {at_most:,}; got {_short(result)}.")
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


def counted(number: int, noun: str, nouns: str | None = None) -> str:
    """Return a number of things in words: one thing, or so many of them.

    Example:
        >>> counted(1, "row"), counted(1200, "row"), counted(2, "entry", "entries")
        ('1 row', '1,200 rows', '2 entries')
    """
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"
