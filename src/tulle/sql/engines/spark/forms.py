"""Spark's form of every entry: the try_ functions where it has them."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from tulle.sql.dialect import Dialect, Form
from tulle.sql.expressions import kinds, numbers
from tulle.sql.expressions.conversions import (
    Typed,
    as_type,
    call,
    convert,
    number,
    usual_days,
    within,
)
from tulle.sql.expressions.dates import field, has_hours, shifted_kind, truncation_unit
from tulle.sql.expressions.entry import any_double, as_written, doubles, filled, said
from tulle.sql.expressions.kinds import (
    BOOLEAN,
    DATE,
    DAYS,
    DECIMAL,
    DOUBLE,
    TEXT,
    WHOLE,
    Kind,
    named_type,
)
from tulle.sql.expressions.numbers import Sizes, bounded, finite, needs_doubles
from tulle.sql.expressions.texts import (
    PAD,
    REPLACE,
    RIGHT,
    SPLIT,
    check_plain_pattern,
    matching,
)

_NUMBER, _TEXT, _TRUTH = Kind(DOUBLE), Kind(TEXT), Kind(BOOLEAN)

_CALENDAR = ("0000-12-31", "+10000-01-01")
"""Between these Spark can convert."""


def near(given: Typed) -> Any:
    """Return a date or timestamp if it is far from the ends of the calendar, and NULL if not."""
    return usual_days(given, _CALENDAR)


def _kind(node: Any, given: list[Kind], sizes: Sizes) -> Kind:
    return Kind(DOUBLE) if needs_doubles(node, given) else bounded(given, sizes)


def _tried(name: str, sizes: Sizes) -> Form:
    def form(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
        shapes = [one.kind for one in given]
        sides = doubles(given, dialect) if needs_doubles(node, shapes) else given
        return Typed(call(name, *(one.node for one in sides)), _kind(node, shapes, sizes))

    return form


def _long(node: Any) -> Any:
    return exp.TryCast(this=node, to=named_type("BIGINT"), safe=True)


def _quotient(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    shapes = [one.kind for one in given]
    if numbers.is_whole_division(node, shapes):
        wide = [as_type(one.node, "DECIMAL(19, 0)") for one in given]
        return Typed(_long(call("TRY_DIVIDE", *wide)), numbers.whole_quotient_kind(shapes))
    sides = [one.node for one in doubles(given, dialect)]
    return Typed(call("TRY_DIVIDE", *sides), Kind(DOUBLE))


def _negative(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    kind = _kind(node, [one.kind for one in given], numbers.SAME)
    if any_double(given):
        return Typed(exp.Paren(this=exp.Neg(this=given[0].node)), kind)
    return Typed(call("TRY_SUBTRACT", number(0), given[0].node), kind)


def _absolute(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    (value,) = given
    kind = _kind(node, [value.kind], numbers.SAME)
    # Spark rounds to 34 digits here, and what is rounded up may not fit.
    if value.kind.name == DECIMAL and value.kind.width > 33:
        kind = Kind(DOUBLE)
    if value.kind.name == WHOLE:
        return Typed(_long(call("ABS", as_type(value.node, "DECIMAL(20, 0)"))), kind)
    if kind.name == DOUBLE:
        (value,) = doubles([value], dialect)
    return Typed(call("ABS", value.node), kind)


def _edge(name: str) -> Form:
    def form(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
        (value,) = given
        if value.kind.name == DOUBLE:
            low, high = (as_type(number(end), "DOUBLE") for end in ("-9.2e18", "9.2e18"))
            return Typed(call(name, within(value.node, low, high)), Kind(WHOLE, 19))
        kind = _kind(node, [value.kind], numbers.SAME)
        return Typed(value.node if value.kind.name == WHOLE else call(name, value.node), kind)

    return form


def _rounded(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    (value,) = given
    places, kind = numbers.places(node), numbers.rounded_kind(given[0].kind, node)
    if value.kind.name == DECIMAL and value.kind.width > 30:
        kind = Kind(DOUBLE)
    if value.kind.name == WHOLE:
        if places >= 0:
            return Typed(value.node, kind)
        wide = as_type(value.node, "DECIMAL(38, 0)")
        return Typed(_long(call("ROUND", wide, number(places))), kind)
    if kind.name == DOUBLE:
        (value,) = doubles([value], dialect)
    made = call("ROUND", value.node, number(places))
    return Typed(finite(made) if value.kind.name == DOUBLE else made, kind)


def _shifted(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    kind = shifted_kind([one.kind for one in given])
    if any(one.kind.name == DATE for one in given):
        kind = Kind(kinds.ZONED) if has_hours(node) else Kind(DATE)
    sides = [
        convert(one, kind, dialect) if one.kind.name == DATE != kind.name else one for one in given
    ]
    name = "TRY_ADD" if isinstance(node, exp.Add) else "TRY_SUBTRACT"
    made = call(name, *(near(one) if one.kind.name in DAYS else one.node for one in sides))
    return Typed(made, kind)


def _days(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    day, count = given
    name = "DATE_ADD" if isinstance(node, exp.Add) else "DATE_SUB"
    held = within(as_type(count.node, "DECIMAL(20, 0)"), number(-1000000), number(10**6))
    whole = exp.TryCast(this=held, to=named_type("INT"), safe=True)
    return Typed(call(name, near(day), whole), Kind(DATE))


_FIELDS = {
    "DOW": "DAYOFWEEK({0}) - 1",
    "ISODOW": "WEEKDAY({0}) + 1",
    "ISOYEAR": "EXTRACT(YEAROFWEEK FROM {0})",
}
"""Spark numbers days of the week from 1; here Sunday is 0, and Monday the first ISO day."""


def _field(name: str, value: Typed) -> Typed:
    inner = near(value) if value.kind.name in {kinds.TIMESTAMP, kinds.ZONED} else value.node
    if name in _FIELDS:
        made = filled(f"CAST({_FIELDS[name]} AS BIGINT)", "spark", [inner])
        return Typed(made, Kind(WHOLE, 19))
    # Numbers of 32 bits would overflow sooner than elsewhere; seconds have fractions.
    made = as_type(exp.Extract(this=exp.Var(this=name), expression=inner), "BIGINT")
    return Typed(made, Kind(WHOLE, 19))


def _truncated(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    (value,) = given
    if value.kind.name != kinds.ZONED:
        value = convert(value, Kind(kinds.ZONED), dialect)
    return Typed(call("DATE_TRUNC", truncation_unit(node), near(value)), Kind(kinds.ZONED))


def _last_day(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    (day,) = (convert(one, Kind(DATE), dialect) for one in given)
    return Typed(call("LAST_DAY", near(day)), Kind(DATE))


def _like(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    check_plain_pattern(node)
    return as_written(_TRUTH, "this", "expression")(node, given, dialect)


FORMS: dict[str, Form] = {
    "add": _tried("TRY_ADD", numbers.SUMMED),
    "subtract": _tried("TRY_SUBTRACT", numbers.SUMMED),
    "multiply": _tried("TRY_MULTIPLY", numbers.MULTIPLIED),
    "divide": _quotient,
    "remainder": _tried("TRY_MOD", numbers.SAME),
    "negate": _negative,
    "absolute": _absolute,
    "sign": numbers.sign,
    "floor": _edge("FLOOR"),
    "ceiling": _edge("CEIL"),
    "round": _rounded,
    "square root": said("SQRT({0})", _NUMBER, numbers.NOT_NEGATIVE),
    "logarithm": said("LN({0})", _NUMBER, numbers.POSITIVE),
    "exponential": said("EXP({0})", _NUMBER, numbers.exponent),
    "logarithm to a base": numbers.logarithm("LOG10({0})"),
    "power": numbers.power,
    "is NaN": numbers.IS_NAN,
    "is infinite": numbers.IS_INFINITE,
    "bits and": numbers.bits("{0} & {1}"),
    "bits or": numbers.bits("{0} | {1}"),
    "bits either": numbers.bits("{0} ^ {1}"),
    "bits not": numbers.bits("~({0})"),
    "shift right": numbers.bits("SHIFTRIGHT({0}, {shift})"),
    "shift by an interval": _shifted,
    "shift by days": _days,
    # DATEDIFF counts in 32 bits, in which the two ends of the calendar are a day apart.
    "days between": said(
        "(CAST(UNIX_DATE({0}) AS BIGINT) - CAST(UNIX_DATE({1}) AS BIGINT))", Kind(WHOLE, 19)
    ),
    "field": field(_field, "EPOCH"),
    "truncate": _truncated,
    "last day": _last_day,
    "lower": as_written(_TEXT, "this"),
    "upper": as_written(_TEXT, "this"),
    "length": as_written(Kind(WHOLE, 19), "this"),
    "trim": as_written(_TEXT, "this", "expression"),
    "substring": as_written(_TEXT, "this"),
    "right": RIGHT,
    "replace": REPLACE,
    "pad": PAD,
    "split": SPLIT,
    "position": said("INSTR({0}, {1})", Kind(WHOLE, 19)),
    "starts with": as_written(_TRUTH, "this", "expression"),
    "ends with": said("ENDSWITH({0}, {1})", _TRUTH),
    "like": _like,
    "match": matching("RLIKE({0}, {1})"),
}
"""By the entry's name."""
