"""DuckDB's form of every entry: under TRY, but for what cannot fail.

TRY stands around every node of its own: what occurs twice within one TRY, or in two of them, is
worked out once beforehand, and outside of both.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from tulle.sql.dialect import Dialect, Form
from tulle.sql.expressions import numbers
from tulle.sql.expressions.conversions import Impossible, Typed, call, convert, number
from tulle.sql.expressions.dates import field, shifted_kind, truncated_kind, truncation_unit
from tulle.sql.expressions.entry import as_written, doubles, function, said, with_arguments
from tulle.sql.expressions.kinds import BOOLEAN, DATE, DOUBLE, TEXT, WHOLE, Kind, named_type
from tulle.sql.expressions.numbers import Sizes, bounded, finite, needs_doubles, none_if_zero
from tulle.sql.expressions.texts import PAD, REPLACE, RIGHT, SPLIT, matching

_NUMBER, _TEXT, _TRUTH = Kind(DOUBLE), Kind(TEXT), Kind(BOOLEAN)


def _tried(form: Form) -> Form:
    def guarded(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
        made = form(node, given, dialect)
        if made.node.find(exp.Query):
            raise Impossible(
                "DuckDB cannot be kept from failing on what is computed with a sub-select; compute "
                "it inside: (SELECT 2 * MAX(x) ...) in place of 2 * (SELECT MAX(x) ...)"
            )
        return Typed(call("TRY", made.node), made.kind)

    return guarded


def _in_doubles(node: Any, given: list[Kind]) -> bool:
    """Say whether to compute in doubles.

    DuckDB brings both sides to one type first. Where that can fail it is not left to DuckDB, which
    does it outside of TRY for what occurs in two of them.
    """
    if needs_doubles(node, given):
        return True
    if len(given) == 1:
        return False
    if all(one.name == WHOLE for one in given):
        return len({one.stored for one in given}) > 1 and any(
            one.stored == "uhugeint" for one in given
        )
    digits = [38 if one.digits is None else one.digits for one in given]
    whole = any(one.name == WHOLE and one.width > 19 for one in given)
    return whole or (
        not isinstance(node, exp.Mul) and max(digits) + max(one.scale for one in given) > 38
    )


def _kind(node: Any, given: list[Kind], sizes: Sizes) -> Kind:
    return Kind(DOUBLE) if _in_doubles(node, given) else bounded(given, sizes)


def _sides(node: Any, given: list[Typed], dialect: Dialect) -> list[Any]:
    if _in_doubles(node, [one.kind for one in given]):
        given = doubles(given, dialect)
    return [one.node for one in given]


def _arithmetic(sizes: Sizes) -> Form:
    def form(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
        one, other = _sides(node, given, dialect)
        made = exp.Paren(this=type(node)(this=one, expression=other))
        return Typed(made, _kind(node, [side.kind for side in given], sizes))

    return form


def _quotient(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    kinds = [one.kind for one in given]
    if numbers.is_whole_division(node, kinds):
        above, below = (one.node for one in given)
        whole = exp.IntDiv(this=above, expression=none_if_zero(below))
        return Typed(exp.Paren(this=whole), numbers.whole_quotient_kind(kinds))
    above, below = (one.node for one in doubles(given, dialect))
    made = exp.Div(this=above, expression=none_if_zero(below), typed=False, safe=False)
    return Typed(exp.Paren(this=made), Kind(DOUBLE))


def _remainder(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    above, below = _sides(node, given, dialect)
    made = exp.Paren(this=exp.Mod(this=above, expression=none_if_zero(below)))
    return Typed(made, _kind(node, [one.kind for one in given], numbers.SAME))


def _single(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    kind = _kind(node, [one.kind for one in given], numbers.SAME)
    return Typed(with_arguments(node, given, "this"), kind)


def _edge(name: str) -> Form:
    def form(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
        (value,) = given
        if value.kind.name == DOUBLE:
            return Typed(finite(call(name, value.node)), Kind(DOUBLE))
        kind = _kind(node, [value.kind], numbers.SAME)
        return Typed(value.node if value.kind.name == WHOLE else call(name, value.node), kind)

    return form


def _rounded(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    (value,) = given
    places, kind = numbers.places(node), numbers.rounded_kind(given[0].kind, node)
    if value.kind.name == WHOLE and places >= 0:
        return Typed(value.node, kind)
    if value.kind.digits is not None and value.kind.digits < -places:
        # DuckDB says 0 of NULL, too, when no digit is left.
        nothing = exp.Mul(this=number(0), expression=call("SIGN", value.node))
        return Typed(exp.Paren(this=nothing), kind)
    made = call("ROUND", value.node, number(places))
    return Typed(finite(made) if value.kind.name == DOUBLE else made, kind)


def _shifted(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    made = with_arguments(node, given, "this", "expression")
    return Typed(made, shifted_kind([one.kind for one in given]))


def _days(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    day, count = given
    added = exp.TryCast(this=count.node, to=named_type("INT"), safe=True)
    return Typed(exp.Paren(this=type(node)(this=day.node, expression=added)), Kind(DATE))


def _field(name: str, value: Typed) -> Typed:
    made = exp.Extract(this=exp.Var(this=name), expression=value.node)
    return Typed(made, Kind(DOUBLE) if name == "EPOCH" else Kind(WHOLE, 19))


def _truncated(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    (value,) = given
    kind = truncated_kind(value.kind)
    if value.kind.name != kind.name:
        value = convert(value, kind, dialect)
    return Typed(call("DATE_TRUNC", truncation_unit(node), value.node), kind)


def _last_day(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    (day,) = (convert(one, Kind(DATE), dialect) for one in given)
    return function("LAST_DAY", Kind(DATE))(node, [day], dialect)


_GUARDED: dict[str, Form] = {
    "add": _arithmetic(numbers.SUMMED),
    "subtract": _arithmetic(numbers.SUMMED),
    "multiply": _arithmetic(numbers.MULTIPLIED),
    "divide": _quotient,
    "remainder": _remainder,
    "negate": _single,
    "absolute": _single,
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
    "bits either": numbers.bits("XOR({0}, {1})"),
    "bits not": numbers.bits("~({0})"),
    "shift right": numbers.bits("{0} >> {shift}"),
    "shift by an interval": _shifted,
    "shift by days": _days,
    "days between": as_written(Kind(WHOLE, 19), "this", "expression"),
    "field": field(_field),
    "truncate": _truncated,
    "last day": _last_day,
    "trim": as_written(_TEXT, "this", "expression"),
    "substring": as_written(_TEXT, "this"),
    "right": RIGHT,
    "replace": REPLACE,
    "pad": PAD,
    "split": SPLIT,
    "position": said("STRPOS({0}, {1})", Kind(WHOLE, 19)),
    "starts with": as_written(_TRUTH, "this", "expression"),
    "ends with": said("SUFFIX({0}, {1})", _TRUTH),
    "match": matching("REGEXP_MATCHES({0}, {1})"),
}
_CANNOT_FAIL: dict[str, Form] = {
    "lower": as_written(_TEXT, "this"),
    "upper": as_written(_TEXT, "this"),
    "length": as_written(Kind(WHOLE, 19), "this"),
    "like": as_written(_TRUTH, "this", "expression"),
}
FORMS: dict[str, Form] = {name: _tried(form) for name, form in _GUARDED.items()} | _CANNOT_FAIL
"""By the entry's name."""
