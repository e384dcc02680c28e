"""Dates and times: fields, units, intervals and differences, each in a form that cannot fail."""

from __future__ import annotations

import re
from typing import Any

from sqlglot import exp

from tulle.sql.expressions import kinds
from tulle.sql.expressions.conversions import (
    Impossible,
    Typed,
    as_numeric,
    as_type,
    call,
    convert,
    number,
    text,
    usual_days,
    within,
)
from tulle.sql.expressions.entry import (
    ALL,
    Entry,
    Form,
    always,
    expanded,
    filled,
    means,
    names,
    text_constant,
)
from tulle.sql.expressions.kinds import DATE, DAYS, DECIMAL, DOUBLE, INTERVAL, WHOLE, Kind

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
"""Intervals that lead from no day that PostgreSQL computes with out of its calendar."""


def unit_of(node: Any) -> str:
    """Return a unit or field that is written into a statement, in one form."""
    written = node.name if node is not None else ""
    return str(written).upper().removesuffix("S")


def check_interval(node: Any, dialect: str) -> None:
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
    longest = _LONGEST[unit] if dialect == "postgres" else min(1000 * _LONGEST[unit], 2**31 - 1)
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


def _field(node: Any) -> str:
    function = _FUNCTIONS.get(type(node))
    name = unit_of(node.this) if function is None else function[0]
    return _ALIASES.get(name, name)


def _check_field(node: Any, given: list[Kind], dialect: str) -> None:
    field_name, kind = _field(node), given[0].name
    known = [name for name, having in _FIELDS.items() if kind in having or kind == kinds.NULL]
    if dialect == "spark" and "EPOCH" in known:
        known.remove("EPOCH")
    if field_name not in known:
        raise Impossible(f"a {kind} has the fields {', '.join(known) or 'none'}")


def _field_kind(given: list[Kind], node: Any, dialect: str) -> Kind:
    if _field(node) == "EPOCH":
        return Kind(DECIMAL, 20, 6) if dialect == "postgres" else Kind(DOUBLE)
    if dialect == "postgres":
        return Kind(DECIMAL, 10, 6)
    return Kind(WHOLE, 19)


_SPARK_FIELDS = {
    "DOW": "DAYOFWEEK({0}) - 1",
    "ISODOW": "WEEKDAY({0}) + 1",
    "ISOYEAR": "EXTRACT(YEAROFWEEK FROM {0})",
}
"""Spark numbers days of the week from 1; here Sunday is 0, and Monday the first ISO day."""


def _extracted(dialect: str) -> Form:
    def form(node: Any, given: list[Typed]) -> Any:
        (value,) = given
        inner = value.node
        if dialect != "duckdb" and value.kind.name in {kinds.TIMESTAMP, kinds.ZONED}:
            inner = usual_days(value, dialect)
        name = _field(node)
        if dialect == "spark" and name in _SPARK_FIELDS:
            return filled(f"CAST({_SPARK_FIELDS[name]} AS BIGINT)", dialect, [inner])
        made = exp.Extract(this=exp.Var(this=name), expression=inner)
        if dialect == "spark":
            # Numbers of 32 bits would overflow sooner than elsewhere; seconds have fractions.
            return as_type(made, "BIGINT", "spark")
        return call("FLOOR", made) if name == "SECOND" and dialect == "postgres" else made

    return form


def _check_unit(node: Any, given: list[Kind], dialect: str) -> None:
    kind = given[0].name
    units = _UNITS.get(kind, _UNITS[DATE])
    if unit_of(node.args.get("unit")) not in units:
        raise Impossible(f"a {kind} is truncated to {', '.join(units)}")
    if any(v for name, v in node.args.items() if name not in {"this", "unit"} and v is not None):
        extra = {n: v for n, v in node.args.items() if n not in {"this", "unit"} and v}
        if extra.keys() - {"input_type_preserved", "unabbreviate"}:
            raise Impossible("it takes a unit and a date or timestamp")


def _truncated_kind(given: list[Kind], node: Any, dialect: str) -> Kind:
    if dialect == "spark":
        return Kind(kinds.ZONED)
    return Kind(kinds.ZONED if given[0].name == kinds.ZONED else kinds.TIMESTAMP)


def _truncated(dialect: str) -> Form:
    def form(node: Any, given: list[Typed]) -> Any:
        (value,) = given
        kind = _truncated_kind([value.kind], node, dialect)
        if value.kind.name != kind.name:
            value = convert(value, kind, dialect)
        inner = value.node if dialect == "duckdb" else usual_days(value, dialect)
        unit = text(unit_of(node.args.get("unit")).lower())
        return call("DATE_TRUNC", unit, inner)

    return form


def _shifted_kind(given: list[Kind], node: Any, dialect: str) -> Kind:
    day = next((one for one in given if one.name in DAYS), Kind(kinds.TIMESTAMP))
    if day.name != DATE:
        return Kind(day.name)
    if dialect == "spark":
        interval = node.find(exp.Interval)
        hours = interval is not None and unit_of(interval.args.get("unit")) in _UNITS[kinds.TIME]
        return Kind(kinds.ZONED) if hours else Kind(DATE)
    return Kind(kinds.TIMESTAMP)


def _shifted(dialect: str) -> Form:
    def form(node: Any, given: list[Typed]) -> Any:
        if dialect == "spark":
            kind = _shifted_kind([one.kind for one in given], node, dialect)
            given = [
                convert(one, kind, dialect) if one.kind.name == DATE != kind.name else one
                for one in given
            ]
        sides = [usual_days(one, dialect) if one.kind.name in DAYS else one.node for one in given]
        if dialect == "spark":
            name = "TRY_ADD" if isinstance(node, exp.Add) else "TRY_SUBTRACT"
            return call(name, *sides)
        return exp.Paren(this=type(node)(this=sides[0], expression=sides[1]))

    return form


def _duckdb_days(node: Any, given: list[Typed]) -> Any:
    day, count = given
    added = exp.TryCast(this=count.node, to=exp.DataType.build("INT"), safe=True)
    return exp.Paren(this=type(node)(this=day.node, expression=added))


def _postgres_days(node: Any, given: list[Typed]) -> Any:
    day, count = given
    whole = within(as_numeric(count).node, number(-1000000), number(1000000))
    added = as_type(whole, "INTEGER", "postgres")
    return exp.Paren(this=type(node)(this=usual_days(day, "postgres"), expression=added))


def _spark_days(node: Any, given: list[Typed]) -> Any:
    day, count = given
    name = "DATE_ADD" if isinstance(node, exp.Add) else "DATE_SUB"
    to = exp.DataType.build("INT")
    whole = exp.TryCast(
        this=within(
            as_type(count.node, "DECIMAL(20, 0)", "spark"), number(-1000000), number(10**6)
        ),
        to=to,
        safe=True,
    )
    return call(name, usual_days(day, "spark"), whole)


def _postgres_between(node: Any, given: list[Typed]) -> Any:
    one, other = (usual_days(day, "postgres") for day in given)
    return exp.Paren(this=exp.Sub(this=one, expression=other))


def _spark_between(node: Any, given: list[Typed]) -> Any:
    return as_type(call("DATEDIFF", given[0].node, given[1].node), "BIGINT", "spark")


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
"""How many borders of a unit lie between two moments, {1} and {0}, as DuckDB counts them."""


def _difference(node: Any) -> Any:
    unit = unit_of(node.args.get("unit")) or "DAY"
    if unit not in _DIFFERENCES:
        raise Impossible(f"differences are counted in {', '.join(_DIFFERENCES)}")
    if unit != "DAY" and not node.args.get("date_part_boundary"):
        raise Impossible("in this dialect it counts whole units; write EXTRACT and subtract")
    sides = [node.this, node.expression]
    if unit in _UNITS[kinds.TIME]:
        sides = [exp.cast(side.copy(), "TIMESTAMP") for side in sides]
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
    value = exp.cast(node.this.copy(), "TIMESTAMP")
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


def _last_day(dialect: str) -> Form:
    texts = {
        "postgres": "CAST(DATE_TRUNC('month', CAST({0} AS TIMESTAMP)) + INTERVAL '1 month' "
        "- INTERVAL '1 day' AS DATE)"
    }

    def form(node: Any, given: list[Typed]) -> Any:
        (day,) = (convert(one, Kind(DATE), dialect) for one in given)
        inner = day.node if dialect == "duckdb" else usual_days(day, dialect)
        return filled(texts.get(dialect, "LAST_DAY({0})"), dialect, [inner])

    return form


def _added_days(node: Any) -> Any:
    if unit_of(node.args.get("unit")) not in {"", "DAY"}:
        raise Impossible("write CAST(... AS DATE) + INTERVAL '1' MONTH")
    return expanded("CAST({0} AS DATE) + {1}", [node.this, node.expression])


_COUNTED_DAYS = {"duckdb": _duckdb_days, "spark": _spark_days, "postgres": _postgres_days}
_SHIFTED = {"spark": _shifted("spark"), "postgres": _shifted("postgres")}

ENTRIES: tuple[Entry, ...] = (
    *(
        Entry(
            node,
            f"{{}} {sign} INTERVAL '3' MONTH",
            (DAYS, names(INTERVAL)),
            _shifted_kind,
            _SHIFTED,
        )
        for node, sign in ((exp.Add, "+"), (exp.Sub, "-"))
    ),
    Entry(exp.Add, "INTERVAL 5 DAY + {}", (names(INTERVAL), DAYS), _shifted_kind, _SHIFTED),
    *(
        Entry(node, f"{{}} {sign} {{}}", (names(DATE), names(WHOLE)), always(DATE), _COUNTED_DAYS)
        for node, sign in ((exp.Add, "+"), (exp.Sub, "-"))
    ),
    Entry(
        exp.Sub,
        "{} - {}",
        (names(DATE), names(DATE)),
        always(WHOLE, 19),
        {"postgres": _postgres_between, "spark": _spark_between},
    ),
    *(
        Entry(
            exp.Extract,
            f"EXTRACT({name} FROM {{}})",
            (having,),
            _field_kind,
            {engine: _extracted(engine) for engine in ALL},
            ("expression",),
            constants=_check_field,
            also=("this",),
        )
        for name, having in _FIELDS.items()
    ),
    *(
        Entry(
            node,
            f"{name}({{}})",
            (having,),
            _field_kind,
            {engine: _extracted(engine) for engine in ALL},
            ("this",),
            constants=_check_field,
        )
        for node, (name, having) in _FUNCTIONS.items()
    ),
    *(
        Entry(
            node,
            f"DATE_TRUNC('{unit.lower()}', {{}})",
            (DAYS,),
            _truncated_kind,
            {engine: _truncated(engine) for engine in ALL},
            ("this",),
            constants=_check_unit,
            also=("unit", "input_type_preserved", "unabbreviate"),
        )
        for node in (exp.TimestampTrunc, exp.DateTrunc)
        for unit in _UNITS[DATE]
    ),
    *(
        Entry(
            exp.DateDiff,
            f"DATE_DIFF('{unit.lower()}', {{}}, {{}})",
            (DAYS, DAYS),
            parts=("expression", "this"),
            expands=_difference,
        )
        for unit in _DIFFERENCES
    ),
    Entry(exp.TimeToStr, "STRFTIME({}, '%Y-%m-%d %H:%M:%S %j%%')", (DAYS,), expands=_formatted),
    Entry(
        exp.LastDay,
        "LAST_DAY({})",
        (DAYS,),
        always(DATE),
        {engine: _last_day(engine) for engine in ALL},
        ("this",),
    ),
    Entry(exp.Date, "DATE({})", (DAYS,), expands=means("this", text="CAST({0} AS DATE)")),
    Entry(
        exp.TsOrDsToDate,
        "CAST({} AS DATE)",
        (DAYS,),
        expands=means("this", text="CAST({0} AS DATE)"),
    ),
    Entry(exp.TsOrDsAdd, "CAST({} AS DATE) + 3", (DAYS,), expands=_added_days),
    Entry(
        exp.TimeToUnix,
        "EPOCH({})",
        (DAYS,),
        expands=means("this", text="EXTRACT(EPOCH FROM {0})"),
    ),
)
"""Functions of dates and times."""
