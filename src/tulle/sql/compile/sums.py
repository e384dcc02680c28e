"""Sums that no number of rows makes fail and whose last digit no order of the rows changes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from sqlglot import exp

from tulle.core.errors import QueryError
from tulle.sql.compile.common_kinds import converted
from tulle.sql.dialect import Dialect, dialect_of
from tulle.sql.expressions.conversions import (
    Typed,
    as_type,
    call,
    number,
    shown,
)
from tulle.sql.expressions.kinds import (
    ANY,
    BOOLEAN,
    DAYS,
    DECIMAL,
    DOUBLE,
    NULL,
    NUMBERS,
    WHOLE,
    Kind,
    named_type,
)

EXACT = 20
"""Numbers of at most so many digits are added exactly: 10**18 of them fit in 38 digits."""

BOUND = "bound"
"""Under this, what the library knows about a sum: its terms are numbers, none beyond it."""

_STEPS = 60
"""A number up to a public bound is a multiple of the bound over two to this power. No number of
rows has so many steps that their count does not fit in 38 digits."""

_SPARE = 12
"""So many times a decimal's last place is halved before its double is rounded to a step."""

_LARGEST_EXPONENT = 500
"""Bounds from two to minus this power up to two to it can be divided so."""

_LEAST_MOST, _LARGEST_MOST = 1e-2, 1e17
"""Doubles up to a bound between these are added as decimals of ``EXACT`` digits."""


def ordered_sum(value: str, dialect: str) -> str:
    """Return a sum of doubles in which the least is added first, whatever the order of the rows."""
    return dialect_of(dialect).ordered_sum(value)


def summable(dialect: Dialect, given: Typed, node: Any) -> Typed:
    """Return an expression as a number to add: a condition that holds counts 1."""
    if given.kind.name == BOOLEAN:
        return converted(dialect, given, Kind(WHOLE, 10), node)
    if given.kind.name not in {*NUMBERS, NULL, ANY}:
        instead = "Write CAST(... AS DOUBLE), or CASE WHEN ... THEN 1 ELSE 0 END"
        if given.kind.name in DAYS:
            days = f"DATE_DIFF('day', DATE '2020-01-01', {shown(node)})"
            instead = f"Ask for days: {days}; LEAST(GREATEST({days}, 0), 3650) has a range, too"
        raise QueryError(
            f"{shown(node)} in an aggregate other than COUNT is not supported: it is a "
            f"{given.kind.name}, and numbers are added and ranked. {instead}."
        )
    return given


def exact_terms(dialect: Dialect, given: Typed, node: Any, most: float) -> Typed:
    """Return numbers whose sum is the same in whatever order they are added.

    Doubles have one where a declared range says how large they are: as decimals that are finer
    than doubles of that size. What is infinite or not a number is NULL, and left out.
    """
    kind = given.kind
    if kind.name == DOUBLE and _LEAST_MOST <= most <= _LARGEST_MOST:
        scale = EXACT - len(str(math.ceil(most))) - 1
        to = exp.DataType.build(f"DECIMAL({EXACT}, {scale})")
        fixed = converted(dialect, given, Kind(DECIMAL, EXACT - scale, scale), node, to)
        return addable(dialect, fixed, node)
    if kind.name == NULL:
        given = Typed(as_type(exp.null(), "INT"), Kind(WHOLE, 10))
        kind = given.kind
    if kind.name not in {WHOLE, DECIMAL}:
        raise QueryError(
            f"SUM and AVG of {shown(node)} inside a sub-select are not supported: it is a "
            f"{kind.name}, and such sums depend on the order in which rows are found, which "
            "other people's rows can change. Declare between which numbers its columns lie, "
            "with ranges=, or write SUM(CAST(... AS DECIMAL(18, 4)))."
        )
    if not dialect.exact and kind.width > EXACT:
        # What does not fit is NULL, and left out.
        scale = min(kind.scale, EXACT // 2)
        to = exp.DataType.build(f"DECIMAL({EXACT}, {scale})")
        given = converted(dialect, given, Kind(DECIMAL, EXACT - scale, scale), node, to)
    return addable(dialect, given, node)


def whole_sum(dialect: Dialect, total: Any, kind: Kind) -> Any:
    """Return an exact sum in the type that its kind says."""
    if kind.name == DOUBLE:
        return as_type(total, "DOUBLE")
    if dialect.exact:
        return as_type(total, "DECIMAL")
    to = exp.DataType.build(f"DECIMAL(38, {kind.scale})")
    return exp.TryCast(this=total, to=to, safe=True)


def sum_of_doubles(dialect: Dialect, value: Any, bound: float, kind: Kind) -> Any:
    """Return a sum that does not depend on the order of the rows, to the last digit.

    Engines add doubles in an order that follows from how all rows lie, so other people's rows
    would show in the last digits of a sum. Where the numbers have a public bound, or come
    from decimals, they are whole multiples of public steps, whose sums are exact. Otherwise
    they are added in order. No value is beyond the bound, NaN or NULL.
    """
    exponent = math.frexp(bound)[1]
    fine = exponent - _STEPS
    if dialect.exact and kind.name == DOUBLE and -_LARGEST_EXPONENT <= exponent <= _STEPS:
        return _sum_of_steps(value, exponent, fine)
    if dialect.exact:
        exact = call("ROUND", exp.cast(value, named_type("DECIMAL")), number(300))
        return exp.Sum(this=exact)
    if kind.name in {WHOLE, DECIMAL} and kind.digits is not None:
        exponent = min(exponent, (10**kind.digits).bit_length())
        fine = -(10**kind.scale).bit_length() - _SPARE
    if abs(exponent) > _LARGEST_EXPONENT:
        return _parsed(dialect, dialect.ordered_sum(value.sql(dialect=dialect.name)))
    if exponent - fine <= _STEPS:
        # Whole numbers of 64 bits may be added faster than wider ones.
        scaled = exp.Mul(this=exp.paren(value), expression=_power(-fine))
        whole = dialect.nearest(scaled.sql(dialect=dialect.name))
        added = _parsed(dialect, dialect.step_sum(f"TRY_CAST({whole} AS BIGINT)"))
        return exp.Mul(this=added, expression=_power(fine))
    # Decimals of many digits: multiples of a coarse step, and of a fine one what is left. Both
    # are exact: they share out the bits of one double.
    coarse = exponent - _STEPS
    many = call("ROUND", exp.Mul(this=exp.paren(value.copy()), expression=_power(-coarse)))
    left = exp.Sub(this=exp.paren(value), expression=exp.Mul(this=many, expression=_power(coarse)))
    parts = _in_steps(dialect, value.copy(), coarse), _in_steps(dialect, left, fine)
    return exp.paren(exp.Add(this=parts[0], expression=parts[1]))


def _sum_of_steps(value: Any, exponent: int, fine: int) -> Any:
    """Return the sum in steps of two to the power ``fine``, which is not above 0.

    An engine that fails on what does not fit gets no such number: all are cut to the bound, and a
    step is at most one, so that none becomes too small either.
    """
    most, least = _power(exponent), exp.Neg(this=_power(exponent))
    cut = call("LEAST", call("GREATEST", value, least), most)
    steps = exp.Mul(this=cut, expression=_power(-fine))
    whole = exp.cast(call("ROUND", steps), named_type("BIGINT"))
    added = exp.cast(exp.Sum(this=whole), named_type("DOUBLE"))
    return exp.Mul(this=added, expression=_power(fine))


def _parsed(dialect: Dialect, text: str) -> Any:
    import sqlglot

    return sqlglot.parse_one(text, dialect=dialect.name)


def _in_steps(dialect: Dialect, value: Any, fine: int) -> Any:
    """Return the sum of numbers that are rounded to multiples of two to this power."""
    whole = call("ROUND", exp.Mul(this=exp.paren(value), expression=_power(-fine)))
    to = exp.DataType.build(dialect.wide, dialect=dialect.name)
    added = exp.Sum(this=exp.TryCast(this=whole, to=to, safe=True))
    return exp.Mul(this=exp.cast(added, named_type("DOUBLE")), expression=_power(fine))


def addable(dialect: Dialect, given: Typed, node: Any) -> Typed:
    """Return numbers of which no number of rows has a sum that does not fit."""
    kind = given.kind
    if dialect.exact and kind.name in {WHOLE, DECIMAL}:
        if kind.digits is None or kind.scale > 300:
            # A sum that is not zero must not be zero as a double: that is an error.
            return replace(given, node=call("ROUND", given.node, number(300)))
        return given
    if kind.name not in {WHOLE, DECIMAL} or kind.width > EXACT:
        return converted(dialect, given, Kind(DOUBLE), node)
    if not dialect.widens_sums:
        wide = exp.DataType.build(f"DECIMAL(38, {kind.scale})")
        return converted(dialect, given, Kind(DECIMAL, 38 - kind.scale, kind.scale), node, wide)
    return given


def _power(exponent: int) -> Any:
    """Return two to a power as a double."""
    return exp.cast(exp.Literal.number(repr(2.0**exponent)), named_type("DOUBLE"))
