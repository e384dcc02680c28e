"""Dates and times: fields, units, intervals and differences: what is supported, on which kinds.

How an engine is kept from failing is in its folder; what several of them do alike is here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sqlglot import exp

from tulle.sql.dialect import Dialect, Form
from tulle.sql.expressions import kinds
from tulle.sql.expressions.conversions import Impossible, Typed, text
from tulle.sql.expressions.entry import Entry, expanded, means, names, text_constant
from tulle.sql.expressions.kinds import DATE, DAYS, INTERVAL, WHOLE, Kind, named_type

_UNITS = {
    DATE: ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY"),
    kinds.TIME: ("HOUR", "MINUTE", "SECOND"),
}
_UNITS[kinds.TIMESTAMP] = _UNITS[kinds.ZONED] = _UNITS[DATE] + _UNITS[kinds.TIME]
_FIELDS = {
    "YEAR": DAYS,
    "QUARTER": DAYS,
    "MONTH": DAYS,
    "WEEK": DAYS,
    "DAY": DAYS,
    "DOW": DAYS,
    "ISODOW": DAYS,
    "ISOYEAR": DAYS,
    "DOY": DAYS,
    "EPOCH": DAYS,
    **dict.fromkeys(("HOUR", "MINUTE", "SECOND"), names(kinds.TIMESTAMP, kinds.ZONED, kinds.TIME)),
}
"""Fields of EXTRACT, each with the kinds that have it."""

_LONGEST = {"YEAR": 4000, "QUARTER": 16000, "MONTH": 48000, "WEEK": 200000, "DAY": 1400000}
_LONGEST |= {"HOUR": 10**7, "MINUTE": 10**8, "SECOND": 10**9}
"""Intervals that lead from no day that any engine computes with out of its calendar."""


def unit_of(node: Any) -> str:
    """Return a unit or field that is written into a statement, in one form."""
    written = node.name if node is not None else ""
    return str(written).upper().removesuffix("S")


def check_interval(node: Any, dialect: Dialect) -> None:
    """Refuse intervals that are not constants of one unit.

    Raises:
        Impossible: saying what an interval may be.
    """
    amount, unit = node.this, unit_of(node.args.get("unit"))
    try:
        size = abs(int(amount.name)) if isinstance(amount, exp.Literal) else None
    except ValueError:
        size = None
    if size is None or unit not in _LONGEST:
        raise Impossible(
            "write an interval as a whole number and a unit, such as INTERVAL '3' MONTH; units: "
            + ", ".join(_LONGEST)
        )
    longest = min(dialect.interval_times * _LONGEST[unit], 2**31 - 1)
    if size > longest:
        raise Impossible(f"the longest interval is {longest} {unit}")


_MOMENTS = names(kinds.TIMESTAMP, kinds.ZONED, kinds.TIME)
_FUNCTIONS: dict[type[Any], tuple[str, frozenset[str]]] = {
    exp.Year: ("YEAR", DAYS),
    exp.Quarter: ("QUARTER", DAYS),
    exp.Month: ("MONTH", DAYS),
    exp.Week: ("WEEK", DAYS),
    exp.WeekOfYear: ("WEEKOFYEAR", DAYS),
    exp.Day: ("DAY", DAYS),
    exp.DayOfMonth: ("DAYOFMONTH", DAYS),
    exp.DayOfWeek: ("DAYOFWEEK", DAYS),
    exp.DayOfWeekIso: ("ISODOW", DAYS),
    exp.DayOfYear: ("DAYOFYEAR", DAYS),
    exp.Hour: ("HOUR", _MOMENTS),
    exp.Minute: ("MINUTE", _MOMENTS),
    exp.Second: ("SECOND", _MOMENTS),
}
"""Functions that are fields of EXTRACT by another name."""

_ALIASES = {
    "DAYOFWEEK": "DOW",
    "WEEKDAY": "DOW",
    "DAYOFWEEK_ISO": "ISODOW",
    "DAYOFYEAR": "DOY",
    "DAYOFMONTH": "DAY",
    "WEEKOFYEAR": "WEEK",
    "YEAROFWEEK": "ISOYEAR",
}


def _field_of(node: Any) -> str:
    """Return the field of EXTRACT that an expression asks for."""
    function = _FUNCTIONS.get(type(node))
    name = unit_of(node.this) if function is None else function[0]
    return _ALIASES.get(name, name)


def field(read: Callable[[str, Typed], Typed], *lacking: str) -> Form:
    """Return a form that reads a field, by its name, off a date or time that has it.

    Fields that are ``lacking`` on an engine are refused there.
    """

    def form(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
        _check_field(node, given[0].kind.name, lacking)
        return read(_field_of(node), given[0])

    return form


def _check_field(node: Any, kind: str, lacking: tuple[str, ...]) -> None:
    known = [name for name, having in _FIELDS.items() if kind in having or kind == kinds.NULL]
    known = [name for name in known if name not in lacking]
    if _field_of(node) not in known:
        raise Impossible(f"a {kind} has the fields {', '.join(known) or 'none'}")


def _check_unit(node: Any, given: list[Kind]) -> None:
    kind = given[0].name
    units = _UNITS.get(kind, _UNITS[DATE])
    if unit_of(node.args.get("unit")) not in units:
        raise Impossible(f"a {kind} is truncated to {', '.join(units)}")
    if any(v for name, v in node.args.items() if name not in {"this", "unit"} and v is not None):
        extra = {n: v for n, v in node.args.items() if n not in {"this", "unit"} and v}
        if extra.keys() - {"input_type_preserved", "unabbreviate"}:
            raise Impossible("it takes a unit and a date or timestamp")


def truncation_unit(node: Any) -> Any:
    """Return the unit of DATE_TRUNC, as a constant."""
    return text(unit_of(node.args.get("unit")).lower())


def truncated_kind(given: Kind) -> Kind:
    """Return the kind of a date or timestamp that is truncated."""
    return Kind(kinds.ZONED if given.name == kinds.ZONED else kinds.TIMESTAMP)


def shifted_kind(given: list[Kind]) -> Kind:
    """Return the kind of a date or timestamp by which an interval is added."""
    day = next((one for one in given if one.name in DAYS), Kind(kinds.TIMESTAMP))
    return Kind(day.name if day.name != DATE else kinds.TIMESTAMP)


def has_hours(node: Any) -> bool:
    """Say whether an interval within an expression is of hours or less."""
    interval = node.find(exp.Interval)
    return interval is not None and unit_of(interval.args.get("unit")) in _UNITS[kinds.TIME]


_DAYS = "(CAST({0} AS DATE) - CAST({1} AS DATE))"
_HOURS = f"({_DAYS} * 24 + EXTRACT(HOUR FROM {{0}}) - EXTRACT(HOUR FROM {{1}}))"
_MINUTES = f"({_HOURS} * 60 + EXTRACT(MINUTE FROM {{0}}) - EXTRACT(MINUTE FROM {{1}}))"
_SECONDS = f"({_MINUTES} * 60 + EXTRACT(SECOND FROM {{0}}) - EXTRACT(SECOND FROM {{1}}))"
_YEARS = "(EXTRACT(YEAR FROM {0}) - EXTRACT(YEAR FROM {1}))"
_DIFFERENCES = {
    "YEAR": _YEARS,
    "QUARTER": f"({_YEARS} * 4 + EXTRACT(QUARTER FROM {{0}}) - EXTRACT(QUARTER FROM {{1}}))",
    "MONTH": f"({_YEARS} * 12 + EXTRACT(MONTH FROM {{0}}) - EXTRACT(MONTH FROM {{1}}))",
    "DAY": _DAYS,
    "HOUR": _HOURS,
    "MINUTE": _MINUTES,
    "SECOND": _SECONDS,
}
"""How many borders of a unit lie between two moments, {1} and {0}."""


def _difference(node: Any) -> Any:
    unit = unit_of(node.args.get("unit")) or "DAY"
    if unit not in _DIFFERENCES:
        raise Impossible(f"differences are counted in {', '.join(_DIFFERENCES)}")
    if unit != "DAY" and not node.args.get("date_part_boundary"):
        raise Impossible("in this dialect it counts whole units; write EXTRACT and subtract")
    sides = [node.this, node.expression]
    if unit in _UNITS[kinds.TIME]:
        sides = [exp.cast(side.copy(), named_type("TIMESTAMP")) for side in sides]
    return expanded(_DIFFERENCES[unit], sides)


_PIECES = {
    "Y": ("YEAR", 4),
    "m": ("MONTH", 2),
    "d": ("DAY", 2),
    "H": ("HOUR", 2),
    "M": ("MINUTE", 2),
    "S": ("SECOND", 2),
    "j": ("DOY", 3),
}


def _formatted(node: Any) -> Any:
    """Return a date as text, put together from its fields; a year has four digits, or it is NULL.

    Raises:
        Impossible: when the format has other pieces.
    """
    written = text_constant(node.args.get("format"), "the format")
    value = exp.cast(node.this.copy(), named_type("TIMESTAMP"))
    made: list[Any] = []
    for sign, plain in re.findall(r"%(.?)|([^%]+)", written, re.DOTALL):
        if plain or sign == "%":
            made.append(text(plain or "%"))
            continue
        if sign not in _PIECES:
            raise Impossible("a format is made of %Y %m %d %H %M %S %j, %% and other texts")
        field, width = _PIECES[sign]
        piece = f"LPAD(CAST(CAST(EXTRACT({field} FROM {{0}}) AS INTEGER) AS TEXT), {width}, '0')"
        if field == "YEAR":
            piece = f"CASE WHEN EXTRACT(YEAR FROM {{0}}) BETWEEN 1 AND 9999 THEN {piece} END"
        made.append(expanded(piece, [value]))
    whole = made[0]
    for piece in made[1:]:
        whole = exp.DPipe(this=whole, expression=piece)
    return exp.Paren(this=whole)


def _added_days(node: Any) -> Any:
    if unit_of(node.args.get("unit")) not in {"", "DAY"}:
        raise Impossible("write CAST(... AS DATE) + INTERVAL '1' MONTH")
    return expanded("CAST({0} AS DATE) + {1}", [node.this, node.expression])


_INTERVAL = "shift by an interval"
_AS_DATE = means("this", text="CAST({0} AS DATE)")

ENTRIES: tuple[Entry, ...] = (
    *(
        Entry(_INTERVAL, node, f"{{}} {sign} INTERVAL '3' MONTH", (DAYS, names(INTERVAL)))
        for node, sign in ((exp.Add, "+"), (exp.Sub, "-"))
    ),
    Entry(_INTERVAL, exp.Add, "INTERVAL 5 DAY + {}", (names(INTERVAL), DAYS)),
    *(
        Entry("shift by days", node, f"{{}} {sign} {{}}", (names(DATE), names(WHOLE)))
        for node, sign in ((exp.Add, "+"), (exp.Sub, "-"))
    ),
    Entry("days between", exp.Sub, "{} - {}", (names(DATE), names(DATE))),
    *(
        Entry(
            "field",
            exp.Extract,
            f"EXTRACT({name} FROM {{}})",
            (having,),
            ("expression",),
            also=("this",),
        )
        for name, having in _FIELDS.items()
    ),
    *(
        Entry("field", node, f"{name}({{}})", (having,), ("this",))
        for node, (name, having) in _FUNCTIONS.items()
    ),
    *(
        Entry(
            "truncate",
            node,
            f"DATE_TRUNC('{unit.lower()}', {{}})",
            (DAYS,),
            ("this",),
            _check_unit,
            ("unit", "input_type_preserved", "unabbreviate"),
        )
        for node in (exp.TimestampTrunc, exp.DateTrunc)
        for unit in _UNITS[DATE]
    ),
    *(
        Entry(
            "difference",
            exp.DateDiff,
            f"DATE_DIFF('{unit.lower()}', {{}}, {{}})",
            (DAYS, DAYS),
            ("expression", "this"),
            expands=_difference,
        )
        for unit in _DIFFERENCES
    ),
    Entry(
        "format",
        exp.TimeToStr,
        "STRFTIME({}, '%Y-%m-%d %H:%M:%S %j%%')",
        (DAYS,),
        expands=_formatted,
    ),
    Entry("last day", exp.LastDay, "LAST_DAY({})", (DAYS,), ("this",)),
    Entry("date", exp.Date, "DATE({})", (DAYS,), expands=_AS_DATE),
    Entry("date", exp.TsOrDsToDate, "CAST({} AS DATE)", (DAYS,), expands=_AS_DATE),
    Entry("add days", exp.TsOrDsAdd, "CAST({} AS DATE) + 3", (DAYS,), expands=_added_days),
    Entry(
        "seconds since 1970",
        exp.TimeToUnix,
        "EPOCH({})",
        (DAYS,),
        expands=means("this", text="EXTRACT(EPOCH FROM {0})"),
    ),
)
"""Functions of dates and times."""
