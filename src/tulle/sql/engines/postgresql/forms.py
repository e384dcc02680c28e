"""PostgreSQL's form of every entry.

Numbers are added and multiplied as numeric, whose length is bounded by counting digits; doubles are
kept between bounds within which no result overflows, and what would underflow is made zero first
(an underflow is an error). So arithmetic with infinities and NaN is NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from tulle.core.validate import counted
from tulle.sql.dialect import Dialect, Form
from tulle.sql.engines.postgresql.conversions import WIDTH, as_numeric, near
from tulle.sql.expressions import kinds, numbers
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
from tulle.sql.expressions.dates import field, shifted_kind, truncated_kind, truncation_unit
from tulle.sql.expressions.entry import (
    any_double,
    as_written,
    doubles,
    filled,
    said,
)
from tulle.sql.expressions.kinds import (
    BOOLEAN,
    DATE,
    DAYS,
    DECIMAL,
    DOUBLE,
    TEXT,
    WHOLE,
    Kind,
)
from tulle.sql.expressions.numbers import Sizes, finite, none_if_zero, sized
from tulle.sql.expressions.texts import (
    PAD,
    REPLACE,
    RIGHT,
    SPLIT,
    check_plain_pattern,
    matching,
)

_NUMBER, _TEXT, _TRUTH = Kind(DOUBLE), Kind(TEXT), Kind(BOOLEAN)


def _numeric_kind(given: Kind) -> Kind:
    return as_numeric(Typed(exp.null(), given)).kind


def _kind(given: list[Kind], sizes: Sizes) -> Kind:
    if any(one.name not in {WHOLE, DECIMAL} for one in given):
        return Kind(DOUBLE)
    found = sized([_numeric_kind(one) for one in given], sizes)
    if found.width > WIDTH:
        raise Impossible(
            f"numbers here may have {counted(found.width, 'digit')}, and PostgreSQL "
            f"fails beyond its limit; at most {WIDTH} are computed with. CAST a "
            "part of it AS DOUBLE"
        )
    return found


def _held(given: Typed) -> Any:
    """Return a double of which two can be added, or NULL."""
    return _below(given, "8e307")


def _below(given: Typed, limit: str) -> Any:
    return within(given.node, double_constant("-" + limit), double_constant(limit))


def _steady(given: Typed) -> Any:
    """Return a double between 1e-146 and 1e154 or zero: products and quotients of two exist.

    Adding and taking away 1e-130 leaves what is larger than 1e-114 as it is, and of the rest a
    multiple of 2**-485.
    """
    tiny = double_constant("1e-130")
    added = exp.Paren(this=exp.Add(this=_below(given, "1e154"), expression=tiny))
    return exp.Paren(this=exp.Sub(this=added, expression=tiny.copy()))


def _arithmetic(sizes: Sizes, held: Callable[[Typed], Any]) -> Form:
    def form(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
        kind = _kind([one.kind for one in given], sizes)
        if any_double(given):
            sides = [held(one) for one in doubles(given, dialect)]
        else:
            sides = [as_numeric(one).node for one in given]
        return Typed(exp.Paren(this=type(node)(this=sides[0], expression=sides[1])), kind)

    return form


def _quotient(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    shapes = [one.kind for one in given]
    if numbers.is_whole_division(node, shapes):
        above, below = (as_numeric(one).node for one in given)
        made = call("DIV", above, none_if_zero(below))
        return Typed(made, numbers.whole_quotient_kind(shapes))
    kind = Kind(DOUBLE)
    if node.args.get("typed") and all(one.name != DOUBLE for one in shapes):
        one, other = (_numeric_kind(shape) for shape in shapes)
        kind = Kind(DECIMAL, (one.digits or 0) + other.scale, 1000)
        if kind.digits is not None and kind.digits > WIDTH:
            raise Impossible("the quotient may be too long a number. CAST a part of it AS DOUBLE")
        above, below = (as_numeric(one).node for one in given)
    else:
        above, below = (_steady(side) for side in doubles(given, dialect))
    made = exp.Div(this=above, expression=none_if_zero(below), typed=True, safe=False)
    return Typed(exp.Paren(this=made), kind)


def _remainder(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    kind = _kind([one.kind for one in given], numbers.SAME)
    if any_double(given):
        raise Impossible("PostgreSQL has no remainder of doubles; CAST AS DECIMAL(38, 6)")
    above, below = (as_numeric(one).node for one in given)
    return Typed(exp.Paren(this=exp.Mod(this=above, expression=none_if_zero(below))), kind)


def _single(name: str) -> Form:
    def form(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
        (value,) = given
        kind = _kind([value.kind], numbers.SAME)
        inner = (value if value.kind.name == DOUBLE else as_numeric(value)).node
        made = exp.Paren(this=exp.Neg(this=inner)) if name == "-" else call(name, inner)
        return Typed(made, kind)

    return form


def _sign(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    (value,) = given
    return numbers.sign(node, [value if value.kind.name == DOUBLE else as_numeric(value)], dialect)


def _edge(name: str) -> Form:
    def form(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
        (value,) = given
        if value.kind.name == DOUBLE:
            return Typed(finite(call(name, value.node)), Kind(DOUBLE))
        kind = _kind([value.kind], numbers.SAME)
        held = as_numeric(value).node if value.kind.name in {WHOLE, DECIMAL} else value.node
        return Typed(held if value.kind.name == WHOLE else call(name, held), kind)

    return form


def _rounded(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    (value,) = given
    held = as_numeric(value)
    rounded = call("ROUND", held.node, number(numbers.places(node)))
    if value.kind.name == DOUBLE:
        return Typed(as_type(rounded, "DOUBLE"), Kind(DOUBLE))
    return Typed(rounded, numbers.rounded_kind(held.kind, node))


def _shifted(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    one, other = (near(side) if side.kind.name in DAYS else side.node for side in given)
    made = exp.Paren(this=type(node)(this=one, expression=other))
    return Typed(made, shifted_kind([side.kind for side in given]))


def _days(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    day, count = given
    whole = within(as_numeric(count).node, number(-1000000), number(1000000))
    added = as_type(whole, "INTEGER")
    return Typed(exp.Paren(this=type(node)(this=near(day), expression=added)), Kind(DATE))


def _between(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    one, other = (near(day) for day in given)
    return Typed(exp.Paren(this=exp.Sub(this=one, expression=other)), Kind(WHOLE, 19))


def _field(name: str, value: Typed) -> Typed:
    inner = near(value) if value.kind.name in {kinds.TIMESTAMP, kinds.ZONED} else value.node
    made: Any = exp.Extract(this=exp.Var(this=name), expression=inner)
    kind = Kind(DECIMAL, 20, 6) if name == "EPOCH" else Kind(DECIMAL, 10, 6)
    return Typed(call("FLOOR", made) if name == "SECOND" else made, kind)


def _truncated(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    (value,) = given
    kind = truncated_kind(value.kind)
    if value.kind.name != kind.name:
        value = convert(value, kind, dialect)
    return Typed(call("DATE_TRUNC", truncation_unit(node), near(value)), kind)


def _last_day(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    (day,) = (convert(one, Kind(DATE), dialect) for one in given)
    text = (
        "CAST(DATE_TRUNC('month', CAST({0} AS TIMESTAMP)) + INTERVAL '1 month' "
        "- INTERVAL '1 day' AS DATE)"
    )
    return Typed(filled(text, dialect.name, [near(day)]), Kind(DATE))


def _like(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    check_plain_pattern(node)
    return as_written(_TRUTH, "this", "expression")(node, given, dialect)


FORMS: dict[str, Form] = {
    "add": _arithmetic(numbers.SUMMED, _held),
    "subtract": _arithmetic(numbers.SUMMED, _held),
    "multiply": _arithmetic(numbers.MULTIPLIED, _steady),
    "divide": _quotient,
    "remainder": _remainder,
    "negate": _single("-"),
    "absolute": _single("ABS"),
    "sign": _sign,
    "floor": _edge("FLOOR"),
    "ceiling": _edge("CEIL"),
    "round": _rounded,
    "square root": said("SQRT({0})", _NUMBER, numbers.NOT_NEGATIVE, nests=False),
    "logarithm": said("LN({0})", _NUMBER, numbers.POSITIVE, nests=False),
    "exponential": said("EXP({0})", _NUMBER, numbers.exponent, nests=False),
    "logarithm to a base": numbers.logarithm("LOG({0})", nests=False),
    "power": numbers.power,
    "is NaN": numbers.IS_NAN,
    "is infinite": numbers.IS_INFINITE,
    "bits and": numbers.bits("{0} & {1}"),
    "bits or": numbers.bits("{0} | {1}"),
    "bits either": numbers.bits("{0} # {1}"),
    "bits not": numbers.bits("~({0})"),
    "shift right": numbers.bits("{0} >> {shift}"),
    "shift by an interval": _shifted,
    "shift by days": _days,
    "days between": _between,
    "field": field(_field),
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
    "position": said('STRPOS({0} COLLATE "C", {1} COLLATE "C")', Kind(WHOLE, 19)),
    "starts with": as_written(_TRUTH, "this", "expression"),
    "ends with": said("STARTS_WITH(REVERSE({0}), REVERSE({1}))", _TRUTH),
    "like": _like,
    "match": matching('{0} COLLATE "C" ~ {1}'),
}
"""By the entry's name."""
