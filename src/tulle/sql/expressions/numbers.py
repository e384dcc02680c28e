"""Arithmetic, functions of numbers and operators on bits: what is supported, and with which kinds.

Functions are NULL outside their domain on all engines. How an engine is kept from failing is in its
folder; what several of them do alike is here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from tulle.sql.dialect import Dialect, Form
from tulle.sql.expressions import kinds
from tulle.sql.expressions.conversions import (
    Impossible,
    Typed,
    as_type,
    call,
    convert,
    double_constant,
    number,
    within,
)
from tulle.sql.expressions.entry import (
    Entry,
    check_length,
    doubles,
    expanded,
    filled,
    names,
    said,
    whole_constant,
)
from tulle.sql.expressions.kinds import BOOLEAN, DECIMAL, DOUBLE, NUMBERS, WHOLE, Kind

# How many digits there may be

Sizes = tuple[Callable[[int, int], int], Callable[[int, int], int]]
"""From the digits before, and after, the point of two numbers to those of what is computed."""

SUMMED: Sizes = (lambda a, b: max(a, b) + 1, max)
MULTIPLIED: Sizes = (lambda a, b: a + b, lambda a, b: a + b)
SAME: Sizes = (max, max)


def sized(given: list[Kind], sizes: Sizes) -> Kind:
    """Return the kind of what is computed with whole numbers and decimals, of any length."""
    wider, deeper = sizes
    before = [38 if one.digits is None else one.digits for one in given]
    after = [one.scale for one in given]
    name = DECIMAL if any(one.name == DECIMAL for one in given) else WHOLE
    return Kind(name, wider(before[0], before[-1]), deeper(after[0], after[-1]))


def bounded(given: list[Kind], sizes: Sizes) -> Kind:
    """Return the kind of what is computed where decimals have at most 38 digits."""
    found = sized(given, sizes)
    if found.name == WHOLE:
        # The engine stays within the type of the wider one.
        wide = max(38 if one.digits is None else one.digits for one in given) > 19
        return Kind(WHOLE, 39 if wide else 19)
    assert found.digits is not None
    return Kind(DECIMAL, min(found.digits, max(38 - found.scale, 0)), found.scale)


def needs_doubles(node: Any, given: list[Kind]) -> bool:
    """Say whether 38 digits do not do: with a double, or where a product has more places."""
    if any(one.name not in {WHOLE, DECIMAL} for one in given):
        return True
    return isinstance(node, exp.Mul) and sum(one.scale for one in given) > 38


# What several engines write alike


def finite(node: Any) -> Any:
    """Return a double if it is a finite number, and NULL otherwise."""
    return within(node, double_constant("-Infinity"), double_constant("Infinity"))


def none_if_zero(node: Any) -> Any:
    """Return a number unless it is zero, and NULL then."""
    return call("NULLIF", node, number(0))


def is_whole_division(node: Any, given: list[Kind]) -> bool:
    """Say whether a quotient is a whole number."""
    typed = isinstance(node, exp.IntDiv) or bool(node.args.get("typed"))
    return typed and all(one.name in {WHOLE, kinds.NULL} for one in given)


def whole_quotient_kind(given: list[Kind]) -> Kind:
    """Return the kind of a quotient that is a whole number."""
    return Kind(WHOLE, max(one.digits or 0 for one in given) or 19)


def sign(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    """Return the sign of a number; NULL of what is not one."""
    (value,) = given
    inner = value.node
    if value.kind.name == DOUBLE:
        inner = call("NULLIF", inner, double_constant("NaN"))
    return Typed(as_type(call("SIGN", inner), "DOUBLE"), Kind(DOUBLE))


def rounded_kind(given: Kind, node: Any) -> Kind:
    """Return the kind of a number that is rounded to a constant number of places."""
    if given.name == DOUBLE:
        return Kind(DOUBLE)
    grown = 38 if given.digits is None else given.digits + 1 + max(-places(node), 0)
    return Kind(given.name, grown, given.scale)


_PLACES = 30


def places(node: Any) -> int:
    """Return to how many places to round.

    Raises:
        Impossible: when that is not a constant, or too many.
    """
    given = node.args.get("decimals")
    if given is None:
        return 0
    negative = isinstance(given, exp.Neg)
    literal = given.this if negative else given
    if not isinstance(literal, exp.Literal) or not literal.is_int:
        raise Impossible("its further arguments must be written as numbers")
    found = -int(literal.name) if negative else int(literal.name)
    if abs(found) > _PLACES:
        raise Impossible(f"round to at most {_PLACES} places")
    return found


def between(low: str, high: str) -> Callable[[Any], Any]:
    """Return what makes a double NULL unless it lies strictly between two others."""
    return lambda node: within(node, double_constant(low), double_constant(high))


POSITIVE = between("0", "Infinity")
NOT_NEGATIVE = between("-5e-324", "Infinity")


def exponent(node: Any) -> Any:
    """Return a double whose power of e exists; those of what is further below are nothing."""
    return call("GREATEST", between("-Infinity", "709")(node), double_constant("-700"))


def logarithm(of_ten: str, *, nests: bool = True) -> Form:
    """Return the logarithm to base 10, as the engine writes it, or to base 2."""
    texts = {"10": of_ten, "2": "LN({0}) / 0.6931471805599453e0"}

    def form(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
        written = said(texts[node.this.name], Kind(DOUBLE), POSITIVE, nests=nests)
        return written(node, given, dialect)

    return form


def power(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    """Return a power that neither overflows nor underflows: it is NULL, or 0, instead."""
    size = _exponent_of(node)
    check_length([given[0].node])
    reach = round(300 / max(abs(size), 1.0))
    tiny = "0e0" if size > 0 else "1e0" if size == 0 else "NULL"
    below = "" if size == int(size) else "WHEN {0} < 0 THEN NULL "
    text = (
        f"CASE {below}WHEN ABS({{0}}) < 1e-{reach} THEN {tiny} "
        f"WHEN ABS({{0}}) < 1e{reach} THEN POWER({{0}}, {size!r}e0) END"
    )
    (value,) = doubles(given, dialect)
    return Typed(as_type(filled(text, dialect.name, [value.node]), "DOUBLE"), Kind(DOUBLE))


def _exponent_of(node: Any) -> float:
    written = node.expression.unnest()
    literal = written.this if isinstance(written, exp.Neg) else written
    try:
        size = float(literal.name) if isinstance(literal, exp.Literal) else -1.0
    except ValueError:
        size = -1.0
    if not 0 <= size <= 64:
        raise Impossible(
            "the exponent must be written as a number, from -64 to 64; otherwise write "
            "EXP(y * LN(x))"
        )
    return -size if isinstance(written, exp.Neg) else size


IS_NAN = said("{0} = CAST('NaN' AS DOUBLE PRECISION)", Kind(BOOLEAN))
IS_INFINITE = said("ABS({0}) = CAST('Infinity' AS DOUBLE PRECISION)", Kind(BOOLEAN))

_BITS = 63


def bits(text: str) -> Form:
    """Return a form over whole numbers of 64 bits; ``{shift}`` is how far the node shifts."""

    def form(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
        written = text.replace("{shift}", str(shift(node))) if "{shift}" in text else text
        wide = [convert(one, Kind(WHOLE, 19), dialect) for one in given]
        return said(written, Kind(WHOLE, 19, 0, "bigint"))(node, wide, dialect)

    return form


def shift(node: Any) -> int:
    """Return how far to shift.

    Raises:
        Impossible: when that is not a constant, or too far.
    """
    return whole_constant(node.expression.unnest(), 0, _BITS - 1, "how far to shift")


# What is supported


def _check_whole(node: Any, given: list[Kind]) -> None:
    if not all(one.name in {WHOLE, kinds.NULL} and one.width <= 19 for one in given):
        raise Impossible("both sides must be whole numbers of at most 64 bits; use FLOOR(a / b)")


def _no_more(node: Any, given: list[Kind]) -> None:
    if any(value for name, value in node.args.items() if name != "this"):
        raise Impossible("it takes one argument")


def _check_round(node: Any, given: list[Kind]) -> None:
    places(node)
    if any(v for name, v in node.args.items() if name not in {"this", "decimals"}):
        raise Impossible("it takes a number and how many places")


def _check_base(node: Any, given: list[Kind]) -> None:
    if node.this.name not in {"2", "10"}:
        raise Impossible("logarithms are LN, LOG10 and LOG2; divide by LN(base)")


def _plain_logarithm(node: Any) -> Any:
    """LOG(x) is to base 10; where it is not, it is LN to the parser."""
    return None if node.expression is not None else expanded("LOG10({0})", [node.this])


_PAIR = (NUMBERS, NUMBERS)
_WHOLES = (names(WHOLE), names(WHOLE))

ENTRIES: tuple[Entry, ...] = (
    Entry("add", exp.Add, "{} + {}", _PAIR),
    Entry("subtract", exp.Sub, "{} - {}", _PAIR),
    Entry("multiply", exp.Mul, "{} * {}", _PAIR),
    Entry("divide", exp.Div, "{} / {}", _PAIR, also=("typed", "safe")),
    Entry("divide", exp.IntDiv, "{} // {}", _WHOLES, constants=_check_whole),
    Entry("remainder", exp.Mod, "{} % {}", _PAIR),
    Entry("negate", exp.Neg, "-{}", (NUMBERS,), ("this",)),
    Entry("absolute", exp.Abs, "ABS({})", (NUMBERS,), ("this",)),
    Entry("sign", exp.Sign, "SIGN({})", (NUMBERS,), ("this",)),
    Entry("floor", exp.Floor, "FLOOR({})", (NUMBERS,), ("this",), _no_more),
    Entry("ceiling", exp.Ceil, "CEIL({})", (NUMBERS,), ("this",), _no_more),
    *(
        Entry("round", exp.Round, written, (NUMBERS,), ("this",), _check_round, also=("decimals",))
        for written in ("ROUND({})", "ROUND({}, 2)", "ROUND({}, -2)")
    ),
    Entry("square root", exp.Sqrt, "SQRT({})", (NUMBERS,), ("this",)),
    Entry("logarithm", exp.Ln, "LN({})", (NUMBERS,), ("this",)),
    Entry("exponential", exp.Exp, "EXP({})", (NUMBERS,), ("this",)),
    *(
        Entry(
            "logarithm to a base",
            exp.Log,
            written,
            (NUMBERS,),
            ("expression",),
            _check_base,
            also=("this",),
            expands=_plain_logarithm,
        )
        for written in ("LOG10({})", "LOG2({})", "LOG({})")
    ),
    *(
        Entry("power", exp.Pow, f"POWER({{}}, {size})", (NUMBERS,), ("this",), also=("expression",))
        for size in ("2", "3", "0.5", "-1", "64")
    ),
    Entry("is NaN", exp.IsNan, "ISNAN({})", (names(DOUBLE),)),
    Entry("is infinite", exp.IsInf, "ISINF({})", (names(DOUBLE),)),
    Entry("bits and", exp.BitwiseAnd, "{} & {}", _WHOLES),
    Entry("bits or", exp.BitwiseOr, "{} | {}", _WHOLES),
    Entry("bits either", exp.BitwiseXor, "XOR({}, {})", _WHOLES),
    Entry("bits not", exp.BitwiseNot, "~({})", (names(WHOLE),)),
    Entry(
        "shift left",
        exp.BitwiseLeftShift,
        "{} << 3",
        (names(WHOLE),),
        expands=lambda node: expanded(f"{{0}} * {2 ** shift(node)}", [node.this]),
    ),
    Entry(
        "shift right",
        exp.BitwiseRightShift,
        "{} >> 3",
        (names(WHOLE),),
        ("this",),
        also=("expression",),
    ),
)
"""Operators and functions of numbers."""
