"""Which functions and operators are supported, each written so that no row makes it fail.

An entry says what kinds of arguments it takes, of what kind its value is, and for each engine the
form that gives a value or NULL for all arguments of these kinds. An engine without a form runs the
expression as it is, which must then be unable to fail; but in DuckDB TRY(...) is put around it
unless the entry says that it ``cannot_fail``. Everything that is not listed is refused when a
question is built. Tests are generated from this list: ``written`` is how a user writes an entry.

In PostgreSQL numbers are added and multiplied as numeric, whose length is bounded by counting
digits; doubles are kept between bounds within which no result overflows, and what would underflow
is made zero first (an underflow is an error there).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from tulle.sql.expressions import kinds
from tulle.sql.expressions.conversions import (
    POSTGRES_WIDTH,
    Impossible,
    Typed,
    as_numeric,
    as_type,
    call,
    convert,
    double_constant,
    number,
    text,
    usual_days,
    within,
)
from tulle.sql.expressions.kinds import (
    DATE,
    DAYS,
    DECIMAL,
    DOUBLE,
    INTERVAL,
    NUMBERS,
    TEXT,
    WHOLE,
    Kind,
)

Form = Callable[[Any, list[Typed]], Any]
"""Returns the expression to run, given the parsed one and its arguments, which are total."""


@dataclass(frozen=True)
class Entry:
    """One function or operator over arguments of given kinds; see the module's text."""

    node: type[Any]
    written: str
    takes: tuple[frozenset[str], ...]
    gives: Callable[[list[Kind], Any, str], Kind]
    forms: Mapping[str, Form | str] = field(default_factory=dict)
    """By engine; a text instead of a form is why this engine cannot do it."""
    parts: tuple[str, ...] = ("this", "expression")
    """Which arguments of the parsed expression are values of the row."""
    constants: Callable[[Any, list[Kind], str], None] | None = None
    """Checks the other arguments, from the schema alone; raises Impossible."""
    cannot_fail: bool = False


def _always(name: str, digits: int | None = None) -> Callable[[list[Kind], Any, str], Kind]:
    return lambda given, node, dialect: Kind(name, digits)


def _names(*listed: str) -> frozenset[str]:
    return frozenset(listed)


# Numbers


def _number_kind(
    wider: Callable[[int, int], int], deeper: Callable[[int, int], int]
) -> Callable[[list[Kind], Any, str], Kind]:
    def kind(given: list[Kind], node: Any, dialect: str) -> Kind:
        if _in_doubles(node, given, dialect):
            return Kind(DOUBLE)
        if dialect == "postgres":
            given = [as_numeric(Typed(exp.null(), one)).kind for one in given]
        sizes = [38 if one.digits is None else one.digits for one in given]
        scales = [one.scale for one in given]
        digits, scale = wider(sizes[0], sizes[-1]), deeper(scales[0], scales[-1])
        name = DECIMAL if any(one.name == DECIMAL for one in given) else WHOLE
        if dialect == "postgres":
            if digits + scale > POSTGRES_WIDTH:
                raise Impossible(
                    f"numbers here may have {digits + scale} digits, and PostgreSQL fails beyond "
                    f"its limit; at most {POSTGRES_WIDTH} are computed with. CAST a part of it AS "
                    "DOUBLE"
                )
            return Kind(name, digits, scale)
        if name == WHOLE:
            # The engine stays within the type of the wider one.
            return Kind(WHOLE, 39 if max(sizes) > 19 else 19)
        return Kind(DECIMAL, min(digits, max(38 - scale, 0)), scale)

    return kind


_summed = _number_kind(lambda a, b: max(a, b) + 1, max)
_multiplied = _number_kind(lambda a, b: a + b, lambda a, b: a + b)
_same = _number_kind(lambda a, b: max(a, b), max)


def _any_double(given: list[Typed]) -> bool:
    return any(one.kind.name not in {WHOLE, DECIMAL} for one in given)


def _doubles(given: list[Typed], dialect: str) -> list[Typed]:
    return [convert(one, Kind(DOUBLE), dialect) for one in given]


def _held(given: Typed, limit: str) -> Any:
    """Return a double in PostgreSQL that is smaller than a limit, or NULL."""
    return within(given.node, double_constant("-" + limit), double_constant(limit))


def _steady(given: Typed) -> Any:
    """Return a double between 1e-146 and 1e154 or zero: products and quotients of two exist.

    Adding and taking away 1e-130 leaves what is larger than 1e-114 as it is, and of the rest a
    multiple of 2**-485.
    """
    tiny = double_constant("1e-130")
    added = exp.Paren(this=exp.Add(this=_held(given, "1e154"), expression=tiny))
    return exp.Paren(this=exp.Sub(this=added, expression=tiny.copy()))


def _postgres_arithmetic(held: Callable[[Typed], Any]) -> Form:
    def form(node: Any, given: list[Typed]) -> Any:
        if _any_double(given):
            sides = [held(one) for one in _doubles(given, "postgres")]
        else:
            sides = [as_numeric(one).node for one in given]
        return exp.Paren(this=type(node)(this=sides[0], expression=sides[1]))

    return form


def _spark_function(name: str) -> Form:
    def form(node: Any, given: list[Typed]) -> Any:
        if _in_doubles(node, [one.kind for one in given], "spark"):
            given = _doubles(given, "spark")
        return call(name, *(one.node for one in given))

    return form


def _duckdb_arithmetic(node: Any, given: list[Typed]) -> Any:
    if _in_doubles(node, [one.kind for one in given], "duckdb"):
        given = _doubles(given, "duckdb")
    return exp.Paren(this=type(node)(this=given[0].node, expression=given[1].node))


def _in_doubles(node: Any, given: list[Kind], dialect: str) -> bool:
    """Say whether to compute in doubles: with one, or where decimals have too many digits.

    DuckDB brings both sides to one type first. Where that can fail it is not left to DuckDB, which
    does it outside of TRY for what occurs in two of them.
    """
    if any(one.name not in {WHOLE, DECIMAL} for one in given):
        return True
    if dialect == "postgres":
        return False
    if isinstance(node, exp.Mul) and sum(one.scale for one in given) > 38:
        return True
    if dialect == "spark" or len(given) == 1:
        return False
    digits = [38 if one.digits is None else one.digits for one in given]
    if all(one.name == WHOLE for one in given):
        return len({one.stored for one in given}) > 1 and any(
            one.stored == "uhugeint" for one in given
        )
    whole = any(one.name == WHOLE and one.width > 19 for one in given)
    return whole or (
        not isinstance(node, exp.Mul) and max(digits) + max(one.scale for one in given) > 38
    )


def _arithmetic(node: type[Any], sign: str, kind: Any, held: Callable[[Typed], Any]) -> Entry:
    names = {"+": "TRY_ADD", "-": "TRY_SUBTRACT", "*": "TRY_MULTIPLY"}
    return Entry(
        node,
        f"{{}} {sign} {{}}",
        (NUMBERS, NUMBERS),
        kind,
        {
            "duckdb": _duckdb_arithmetic,
            "spark": _spark_function(names[sign]),
            "postgres": _postgres_arithmetic(held),
        },
    )


def _none_if_zero(node: Any) -> Any:
    return call("NULLIF", node, number(0))


def _is_whole_division(node: Any, given: list[Kind]) -> bool:
    typed = isinstance(node, exp.IntDiv) or bool(node.args.get("typed"))
    return typed and all(one.name in {WHOLE, kinds.NULL} for one in given)


def _quotient_kind(given: list[Kind], node: Any, dialect: str) -> Kind:
    if _is_whole_division(node, given):
        return Kind(WHOLE, max(one.digits or 0 for one in given) or 19)
    numeric = bool(node.args.get("typed")) and all(one.name != DOUBLE for one in given)
    if dialect == "postgres" and numeric:
        above, below = (as_numeric(Typed(exp.null(), one)).kind for one in given)
        digits = (above.digits or 0) + below.scale
        kind = Kind(DECIMAL, digits, 1000)
        if digits > POSTGRES_WIDTH:
            raise Impossible("the quotient may be too long a number. CAST a part of it AS DOUBLE")
        return kind
    return Kind(DOUBLE)


def _quotient(dialect: str) -> Form:
    def form(node: Any, given: list[Typed]) -> Any:
        shapes = [one.kind for one in given]
        if _is_whole_division(node, shapes):
            return _whole_quotient(dialect, given)
        kind = _quotient_kind(shapes, node, dialect)
        if kind.name == DECIMAL:
            above, below = (as_numeric(one).node for one in given)
        else:
            sides = _doubles(given, dialect)
            above, below = [_steady(s) if dialect == "postgres" else s.node for s in sides]
        if dialect == "spark":
            return call("TRY_DIVIDE", above, below)
        typed = dialect == "postgres"
        return exp.Paren(
            this=exp.Div(this=above, expression=_none_if_zero(below), typed=typed, safe=False)
        )

    return form


def _whole_quotient(dialect: str, given: list[Typed]) -> Any:
    above, below = (one.node for one in given)
    if dialect == "duckdb":
        return exp.Paren(this=exp.IntDiv(this=above, expression=_none_if_zero(below)))
    if dialect == "postgres":
        above, below = (as_numeric(one).node for one in given)
        return call("DIV", above, _none_if_zero(below))
    wide = [as_type(one.node, "DECIMAL(19, 0)", "spark") for one in given]
    to = exp.DataType.build("BIGINT")
    return exp.TryCast(this=call("TRY_DIVIDE", *wide), to=to, safe=True)


def _check_whole(node: Any, given: list[Kind], dialect: str) -> None:
    if not all(one.name in {WHOLE, kinds.NULL} and one.width <= 19 for one in given):
        raise Impossible("both sides must be whole numbers of at most 64 bits; use FLOOR(a / b)")


def _remainder(dialect: str) -> Form:
    def form(node: Any, given: list[Typed]) -> Any:
        if dialect == "spark":
            return _spark_function("TRY_MOD")(node, given)
        if dialect == "postgres":
            if _any_double(given):
                raise Impossible("PostgreSQL has no remainder of doubles; CAST AS DECIMAL(38, 6)")
            given = [as_numeric(one) for one in given]
        elif _in_doubles(node, [one.kind for one in given], dialect):
            given = _doubles(given, dialect)
        above, below = (one.node for one in given)
        return exp.Paren(this=exp.Mod(this=above, expression=_none_if_zero(below)))

    return form


def _spark_negative(node: Any, given: list[Typed]) -> Any:
    if _any_double(given):
        return exp.Paren(this=exp.Neg(this=given[0].node))
    return call("TRY_SUBTRACT", number(0), given[0].node)


def _absolute_kind(given: list[Kind], node: Any, dialect: str) -> Kind:
    # Spark rounds to 34 digits here, and what is rounded up may not fit.
    if dialect == "spark" and given[0].name == DECIMAL and given[0].width > 33:
        return Kind(DOUBLE)
    return _same(given, node, dialect)


def _spark_absolute(node: Any, given: list[Typed]) -> Any:
    (value,) = given
    if value.kind.name != WHOLE:
        if _absolute_kind([value.kind], node, "spark").name == DOUBLE:
            (value,) = _doubles([value], "spark")
        return call("ABS", value.node)
    wide = call("ABS", as_type(value.node, "DECIMAL(20, 0)", "spark"))
    return exp.TryCast(this=wide, to=exp.DataType.build("BIGINT"), safe=True)


def _postgres_single(name: str) -> Form:
    def form(node: Any, given: list[Typed]) -> Any:
        (value,) = given
        if value.kind.name != DOUBLE:
            value = as_numeric(value)
        return exp.Paren(this=exp.Neg(this=value.node)) if name == "-" else call(name, value.node)

    return form


def _sign(dialect: str) -> Form:
    def form(node: Any, given: list[Typed]) -> Any:
        (value,) = given
        if dialect == "postgres" and value.kind.name != DOUBLE:
            value = as_numeric(value)
        return as_type(call("SIGN", value.node), "DOUBLE", "duckdb")

    return form


def _edge_kind(given: list[Kind], node: Any, dialect: str) -> Kind:
    if given[0].name == DOUBLE:
        return Kind(WHOLE, 19) if dialect == "spark" else Kind(DOUBLE)
    return _same(given, node, dialect)


def _edge(name: str, dialect: str) -> Form:
    def form(node: Any, given: list[Typed]) -> Any:
        (value,) = given
        if value.kind.name == WHOLE:
            return as_numeric(value).node if dialect == "postgres" else value.node
        if dialect == "postgres" and value.kind.name == DECIMAL:
            value = as_numeric(value)
        if dialect == "spark" and value.kind.name == DOUBLE:
            limit = as_type(number("9.2e18"), "DOUBLE", "spark")
            low = as_type(number("-9.2e18"), "DOUBLE", "spark")
            return call(name, within(value.node, low, limit))
        return call(name, value.node)

    return form


def _no_more(node: Any, given: list[Kind], dialect: str) -> None:
    if any(value for name, value in node.args.items() if name != "this"):
        raise Impossible("it takes one argument")


_PLACES = 30


def _places(node: Any) -> int:
    given = node.args.get("decimals")
    if given is None:
        return 0
    sign = -1 if isinstance(given, exp.Neg) else 1
    literal = given.this if isinstance(given, exp.Neg) else given
    if not isinstance(literal, exp.Literal) or not literal.is_int:
        raise Impossible("its further arguments must be written as numbers")
    places = sign * int(literal.name)
    if abs(places) > _PLACES:
        raise Impossible(f"round to at most {_PLACES} places")
    return places


def _check_round(node: Any, given: list[Kind], dialect: str) -> None:
    _places(node)
    if any(v for name, v in node.args.items() if name not in {"this", "decimals"}):
        raise Impossible("it takes a number and how many places")


def _rounded_kind(given: list[Kind], node: Any, dialect: str) -> Kind:
    if given[0].name == DOUBLE:
        return Kind(DOUBLE)
    if dialect == "spark" and given[0].name == DECIMAL and given[0].width > 30:
        return Kind(DOUBLE)
    held = as_numeric(Typed(exp.null(), given[0])).kind if dialect == "postgres" else given[0]
    grown = 38 if held.digits is None else held.digits + 1 + max(-_places(node), 0)
    return Kind(held.name, grown, held.scale)


def _rounded(dialect: str) -> Form:
    def form(node: Any, given: list[Typed]) -> Any:
        (value,) = given
        places = _places(node)
        kind = _rounded_kind([value.kind], node, dialect)
        if dialect == "postgres":
            held = as_numeric(value).node
            rounded = call("ROUND", held, number(places))
            if value.kind.name == DOUBLE:
                return as_type(rounded, "DOUBLE PRECISION", "postgres")
            return rounded
        if value.kind.name == WHOLE and places >= 0:
            return value.node
        if dialect == "spark" and kind.name == DOUBLE:
            (value,) = _doubles([value], "spark")
        elif dialect == "spark" and value.kind.name == WHOLE:
            wide = as_type(value.node, "DECIMAL(38, 0)", "spark")
            to = exp.DataType.build("BIGINT")
            return exp.TryCast(this=call("ROUND", wide, number(places)), to=to, safe=True)
        return call("ROUND", value.node, number(places))

    return form


# Dates and times

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
    "DOY": DAYS,
    "EPOCH": DAYS,
    **dict.fromkeys(("HOUR", "MINUTE", "SECOND"), _names("timestamp", kinds.ZONED, kinds.TIME)),
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


def _field(node: Any) -> str:
    plain = {exp.Year: "YEAR", exp.Quarter: "QUARTER", exp.Month: "MONTH", exp.Day: "DAY"}
    if type(node) in plain:
        return plain[type(node)]
    name = unit_of(node.this)
    return {"DAYOFWEEK": "DOW", "DAYOFYEAR": "DOY"}.get(name, name)


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
    if dialect == "postgres" or (dialect == "spark" and _field(node) == "SECOND"):
        return Kind(DECIMAL, 10, 6)
    return Kind(WHOLE, 19)


def _extracted(dialect: str) -> Form:
    def form(node: Any, given: list[Typed]) -> Any:
        (value,) = given
        inner = value.node
        if dialect != "duckdb" and value.kind.name in {kinds.TIMESTAMP, kinds.ZONED}:
            inner = usual_days(value, dialect)
        return exp.Extract(this=exp.Var(this=_field(node)), expression=inner)

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
    return call("DATEDIFF", given[0].node, given[1].node)


# Texts


def _check_pattern(node: Any, given: list[Kind], dialect: str) -> None:
    pattern = node.expression
    if dialect == "duckdb":
        return
    if not (isinstance(pattern, exp.Literal) and pattern.is_string) or "\\" in pattern.name:
        raise Impossible("a pattern must be a constant without \\, such as LIKE 'a%'")


def _check_substring(node: Any, given: list[Kind], dialect: str) -> None:
    for name, value in node.args.items():
        if name == "this" or value is None:
            continue
        literal = isinstance(value, exp.Literal) and value.is_int and int(value.name) < 2**31
        if name not in {"start", "length"} or not literal:
            raise Impossible("its further arguments must be written as numbers")


def _check_trim(node: Any, given: list[Kind], dialect: str) -> None:
    if node.args.get("collation"):
        raise Impossible("it takes a text and the characters to cut off")


def _function(node: type[Any], written: str, gives: Any, **more: Any) -> Entry:
    return Entry(node, written, (_names(TEXT),), gives, parts=("this",), **more)


_COUNTED_DAYS = {"duckdb": _duckdb_days, "spark": _spark_days, "postgres": _postgres_days}
_SHIFTED = {"spark": _shifted("spark"), "postgres": _shifted("postgres")}
_BOTH = {engine: _quotient(engine) for engine in ("duckdb", "postgres", "spark")}

ENTRIES: tuple[Entry, ...] = (
    _arithmetic(exp.Add, "+", _summed, lambda one: _held(one, "8e307")),
    _arithmetic(exp.Sub, "-", _summed, lambda one: _held(one, "8e307")),
    _arithmetic(exp.Mul, "*", _multiplied, _steady),
    Entry(exp.Div, "{} / {}", (NUMBERS, NUMBERS), _quotient_kind, _BOTH),
    Entry(
        exp.IntDiv,
        "{} // {}",
        (_names(WHOLE), _names(WHOLE)),
        _quotient_kind,
        _BOTH,
        constants=_check_whole,
    ),
    Entry(
        exp.Mod,
        "{} % {}",
        (NUMBERS, NUMBERS),
        _same,
        {engine: _remainder(engine) for engine in ("duckdb", "postgres", "spark")},
    ),
    Entry(
        exp.Neg,
        "-{}",
        (NUMBERS,),
        _same,
        {"spark": _spark_negative, "postgres": _postgres_single("-")},
        ("this",),
    ),
    Entry(
        exp.Abs,
        "ABS({})",
        (NUMBERS,),
        _absolute_kind,
        {"spark": _spark_absolute, "postgres": _postgres_single("ABS")},
        ("this",),
    ),
    Entry(
        exp.Sign,
        "SIGN({})",
        (NUMBERS,),
        _always(DOUBLE),
        {engine: _sign(engine) for engine in ("duckdb", "postgres", "spark")},
        ("this",),
    ),
    *(
        Entry(
            node,
            f"{name}({{}})",
            (NUMBERS,),
            _edge_kind,
            {engine: _edge(name, engine) for engine in ("duckdb", "postgres", "spark")},
            ("this",),
            constants=_no_more,
        )
        for node, name in ((exp.Floor, "FLOOR"), (exp.Ceil, "CEIL"))
    ),
    *(
        Entry(
            exp.Round,
            written,
            (NUMBERS,),
            _rounded_kind,
            {engine: _rounded(engine) for engine in ("duckdb", "postgres", "spark")},
            ("this",),
            constants=_check_round,
        )
        for written in ("ROUND({})", "ROUND({}, 2)", "ROUND({}, -2)")
    ),
    *(
        Entry(
            node,
            f"{{}} {sign} INTERVAL '3' MONTH",
            (DAYS, _names(INTERVAL)),
            _shifted_kind,
            _SHIFTED,
        )
        for node, sign in ((exp.Add, "+"), (exp.Sub, "-"))
    ),
    Entry(exp.Add, "INTERVAL 5 DAY + {}", (_names(INTERVAL), DAYS), _shifted_kind, _SHIFTED),
    *(
        Entry(
            node, f"{{}} {sign} {{}}", (_names(DATE), _names(WHOLE)), _always(DATE), _COUNTED_DAYS
        )
        for node, sign in ((exp.Add, "+"), (exp.Sub, "-"))
    ),
    Entry(
        exp.Sub,
        "{} - {}",
        (_names(DATE), _names(DATE)),
        _always(WHOLE, 19),
        {"postgres": _postgres_between, "spark": _spark_between},
    ),
    *(
        Entry(
            exp.Extract,
            f"EXTRACT({name} FROM {{}})",
            (having,),
            _field_kind,
            {engine: _extracted(engine) for engine in ("duckdb", "postgres", "spark")},
            ("expression",),
            constants=_check_field,
        )
        for name, having in _FIELDS.items()
    ),
    *(
        Entry(
            node,
            f"{name}({{}})",
            (DAYS,),
            _field_kind,
            {engine: _extracted(engine) for engine in ("duckdb", "postgres", "spark")},
            ("this",),
            constants=_check_field,
        )
        for node, name in (
            (exp.Year, "YEAR"),
            (exp.Quarter, "QUARTER"),
            (exp.Month, "MONTH"),
            (exp.Day, "DAY"),
        )
    ),
    *(
        Entry(
            node,
            f"DATE_TRUNC('{unit.lower()}', {{}})",
            (DAYS,),
            _truncated_kind,
            {engine: _truncated(engine) for engine in ("duckdb", "postgres", "spark")},
            ("this",),
            constants=_check_unit,
        )
        for node in (exp.TimestampTrunc, exp.DateTrunc)
        for unit in _UNITS[DATE]
    ),
    _function(exp.Lower, "LOWER({})", _always(TEXT), cannot_fail=True),
    _function(exp.Upper, "UPPER({})", _always(TEXT), cannot_fail=True),
    _function(exp.Length, "LENGTH({})", _always(WHOLE, 19), cannot_fail=True),
    Entry(
        exp.Trim,
        "TRIM({})",
        (_names(TEXT), _names(TEXT)),
        _always(TEXT),
        constants=_check_trim,
    ),
    *(
        _function(exp.Substring, written, _always(TEXT), constants=_check_substring)
        for written in ("SUBSTRING({}, 2)", "SUBSTRING({}, 1, 3)")
    ),
    Entry(exp.StartsWith, "STARTS_WITH({}, 'a')", (_names(TEXT),) * 2, _always(kinds.BOOLEAN)),
    *(
        Entry(
            node,
            f"{{}} {word} 'a%'",
            (_names(TEXT),) * 2,
            _always(kinds.BOOLEAN),
            constants=_check_pattern,
            cannot_fail=True,
        )
        for node, word in ((exp.Like, "LIKE"), (exp.ILike, "ILIKE"))
    ),
)
"""All functions and operators over values; conditions, CASE and the like are in statements."""


def entries_of(node: Any) -> list[Entry]:
    """Return the entries for an expression, whatever the kinds of its arguments."""
    return [entry for entry in ENTRIES if entry.node is type(node)]


def apply(entry: Entry, node: Any, given: list[Typed], dialect: str) -> Typed:
    """Return an expression in the form in which this engine cannot fail on it.

    Raises:
        Impossible: when there is none.
    """
    shapes = [one.kind for one in given]
    if entry.constants is not None:
        entry.constants(node, shapes, dialect)
    form = entry.forms.get(dialect)
    if isinstance(form, str):
        raise Impossible(form)
    kind = entry.gives(shapes, node, dialect)
    if form is not None:
        made = form(node, given)
    else:
        made = node.copy()
        for name, one in zip(entry.parts, given, strict=False):
            made.set(name, one.node)
        if isinstance(made, exp.Binary):
            made = exp.Paren(this=made)
    if dialect == "duckdb" and not entry.cannot_fail:
        if made.find(exp.Query):
            raise Impossible(
                "DuckDB cannot be kept from failing on what is computed with a sub-select; compute "
                "it inside: (SELECT 2 * MAX(x) ...) in place of 2 * (SELECT MAX(x) ...)"
            )
        # Around every node of its own: what occurs twice within one TRY, or in two of them, is
        # worked out once beforehand, and outside of both.
        made = call("TRY", made)
    return Typed(made, kind)
