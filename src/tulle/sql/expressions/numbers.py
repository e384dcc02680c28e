"""Arithmetic, functions of numbers and operators on bits, each in a form that cannot fail.

In PostgreSQL numbers are added and multiplied as numeric, whose length is bounded by counting
digits; doubles are kept between bounds within which no result overflows, and what would underflow
is made zero first (an underflow is an error there). So arithmetic with infinities and NaN is NULL
there, and as usual elsewhere; functions are NULL outside their domain on all engines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from tulle.core.validate import counted
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
    within,
)
from tulle.sql.expressions.entry import (
    ALL,
    Entry,
    Form,
    Gives,
    always,
    any_double,
    check_length,
    doubles,
    expanded,
    filled,
    names,
    said,
    whole_constant,
)
from tulle.sql.expressions.kinds import BOOLEAN, DECIMAL, DOUBLE, NUMBERS, WHOLE, Kind


def _number_kind(wider: Callable[[int, int], int], deeper: Callable[[int, int], int]) -> Gives:
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
                    f"numbers here may have {counted(digits + scale, 'digit')}, and PostgreSQL "
                    f"fails beyond its limit; at most {POSTGRES_WIDTH} are computed with. CAST a "
                    "part of it AS DOUBLE"
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


def _finite(node: Any) -> Any:
    """Return a double if it is a finite number, and NULL otherwise."""
    return within(node, double_constant("-Infinity"), double_constant("Infinity"))


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
        if any_double(given):
            sides = [held(one) for one in doubles(given, "postgres")]
        else:
            sides = [as_numeric(one).node for one in given]
        return exp.Paren(this=type(node)(this=sides[0], expression=sides[1]))

    return form


def _spark_function(name: str) -> Form:
    def form(node: Any, given: list[Typed]) -> Any:
        in_doubles = _in_doubles(node, [one.kind for one in given], "spark")
        if in_doubles:
            given = doubles(given, "spark")
        return call(name, *(one.node for one in given))

    return form


def _duckdb_arithmetic(node: Any, given: list[Typed]) -> Any:
    in_doubles = _in_doubles(node, [one.kind for one in given], "duckdb")
    if in_doubles:
        given = doubles(given, "duckdb")
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
            sides = doubles(given, dialect)
            above, below = (_steady(s) if dialect == "postgres" else s.node for s in sides)
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
            if any_double(given):
                raise Impossible("PostgreSQL has no remainder of doubles; CAST AS DECIMAL(38, 6)")
            given = [as_numeric(one) for one in given]
        in_doubles = dialect == "duckdb" and _in_doubles(node, [o.kind for o in given], dialect)
        if in_doubles:
            given = doubles(given, dialect)
        above, below = (one.node for one in given)
        return exp.Paren(this=exp.Mod(this=above, expression=_none_if_zero(below)))

    return form


def _spark_negative(node: Any, given: list[Typed]) -> Any:
    if any_double(given):
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
            (value,) = doubles([value], "spark")
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
        inner = value.node
        if value.kind.name == DOUBLE:
            inner = call("NULLIF", inner, double_constant("NaN"))
        return as_type(call("SIGN", inner), "DOUBLE", "duckdb")

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
        made = call(name, value.node)
        return _finite(made) if value.kind.name == DOUBLE else made

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
            (value,) = doubles([value], "spark")
        elif dialect == "spark" and value.kind.name == WHOLE:
            wide = as_type(value.node, "DECIMAL(38, 0)", "spark")
            to = exp.DataType.build("BIGINT")
            return exp.TryCast(this=call("ROUND", wide, number(places)), to=to, safe=True)
        if dialect == "duckdb" and value.kind.digits is not None and value.kind.digits < -places:
            # DuckDB says 0 of NULL, too, when no digit is left.
            return exp.Paren(this=exp.Mul(this=number(0), expression=call("SIGN", value.node)))
        made = call("ROUND", value.node, number(places))
        return _finite(made) if value.kind.name == DOUBLE else made

    return form


# Functions of doubles


def _between(low: str, high: str) -> Callable[[Any], Any]:
    """Return what makes a double NULL unless it lies strictly between two others."""
    return lambda node: within(node, double_constant(low), double_constant(high))


def _exponent(node: Any) -> Any:
    # Below, a power of e is nothing, which PostgreSQL calls an error.
    return call("GREATEST", _between("-Infinity", "709")(node), double_constant("-700"))


def _function(node: type[Any], name: str, hold: Callable[[Any], Any]) -> Entry:
    forms = said(hold, every=f"{name}({{0}})")
    return Entry(node, f"{name}({{}})", (NUMBERS,), always(DOUBLE), forms, ("this",))


def _logarithm_form(dialect: str) -> Form:
    texts = {"10": _LOG10, "2": {"every": "LN({0}) / 0.6931471805599453e0"}}

    def form(node: Any, given: list[Typed]) -> Any:
        found = said(_between("0", "Infinity"), **texts[node.this.name])[dialect]
        assert callable(found)
        return found(node, given)

    return form


_LOG10 = {"every": "LOG10({0})", "postgres": "LOG({0})"}


def _check_base(node: Any, given: list[Kind], dialect: str) -> None:
    if node.this.name not in {"2", "10"}:
        raise Impossible("logarithms are LN, LOG10 and LOG2; divide by LN(base)")


def _plain_logarithm(node: Any) -> Any:
    """LOG(x) is to base 10; Spark's, which is not, is LN to the parser."""
    return None if node.expression is not None else expanded("LOG10({0})", [node.this])


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


def _power(dialect: str) -> Form:
    def form(node: Any, given: list[Typed]) -> Any:
        """Return a power that neither overflows nor underflows: it is NULL, or 0, instead."""
        exponent = _exponent_of(node)
        check_length([given[0].node])
        reach = round(300 / max(abs(exponent), 1.0))
        tiny = "0e0" if exponent > 0 else "1e0" if exponent == 0 else "NULL"
        below = "" if exponent == int(exponent) else "WHEN {0} < 0 THEN NULL "
        text = (
            f"CASE {below}WHEN ABS({{0}}) < 1e-{reach} THEN {tiny} "
            f"WHEN ABS({{0}}) < 1e{reach} THEN POWER({{0}}, {exponent!r}e0) END"
        )
        (value,) = doubles(given, dialect)
        return as_type(filled(text, dialect, [value.node]), "DOUBLE", "duckdb")

    return form


# Bits


def _bits(**texts: str) -> dict[str, Form | str]:
    """Return forms over whole numbers of 64 bits."""

    def form_of(dialect: str) -> Form:
        plain = said(**texts)[dialect]
        assert callable(plain)

        def form(node: Any, given: list[Typed]) -> Any:
            return plain(node, [convert(one, _LONG, dialect) for one in given])

        return form

    return {dialect: form_of(dialect) for dialect in ALL}


_LONG = Kind(WHOLE, 19)
_BITS = 63


def _shift(node: Any) -> int:
    return whole_constant(node.expression.unnest(), 0, _BITS - 1, "how far to shift")


def _shifted_right(dialect: str) -> Form:
    def form(node: Any, given: list[Typed]) -> Any:
        plain = _bits(every=f"{{0}} >> {_shift(node)}", spark=f"SHIFTRIGHT({{0}}, {_shift(node)})")
        chosen = plain[dialect]
        assert callable(chosen)
        return chosen(node, given)

    return form


def _bit_entry(node: type[Any], written: str, **texts: str) -> Entry:
    takes = (names(WHOLE),) * written.count("{}")
    return Entry(node, written, takes, always(WHOLE, 19, "bigint"), _bits(**texts))


_BOTH = {engine: _quotient(engine) for engine in ALL}

_IS_NAN = "{0} = CAST('NaN' AS DOUBLE PRECISION)"
_IS_INFINITE = "ABS({0}) = CAST('Infinity' AS DOUBLE PRECISION)"

ENTRIES: tuple[Entry, ...] = (
    _arithmetic(exp.Add, "+", _summed, lambda one: _held(one, "8e307")),
    _arithmetic(exp.Sub, "-", _summed, lambda one: _held(one, "8e307")),
    _arithmetic(exp.Mul, "*", _multiplied, _steady),
    Entry(exp.Div, "{} / {}", (NUMBERS, NUMBERS), _quotient_kind, _BOTH, also=("typed", "safe")),
    Entry(
        exp.IntDiv,
        "{} // {}",
        (names(WHOLE), names(WHOLE)),
        _quotient_kind,
        _BOTH,
        constants=_check_whole,
    ),
    Entry(
        exp.Mod,
        "{} % {}",
        (NUMBERS, NUMBERS),
        _same,
        {engine: _remainder(engine) for engine in ALL},
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
        always(DOUBLE),
        {engine: _sign(engine) for engine in ALL},
        ("this",),
    ),
    *(
        Entry(
            node,
            f"{name}({{}})",
            (NUMBERS,),
            _edge_kind,
            {engine: _edge(name, engine) for engine in ALL},
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
            {engine: _rounded(engine) for engine in ALL},
            ("this",),
            constants=_check_round,
            also=("decimals",),
        )
        for written in ("ROUND({})", "ROUND({}, 2)", "ROUND({}, -2)")
    ),
    _function(exp.Sqrt, "SQRT", _between("-5e-324", "Infinity")),
    _function(exp.Ln, "LN", _between("0", "Infinity")),
    _function(exp.Exp, "EXP", _exponent),
    *(
        Entry(
            exp.Log,
            written,
            (NUMBERS,),
            always(DOUBLE),
            {engine: _logarithm_form(engine) for engine in ALL},
            ("expression",),
            _check_base,
            also=("this",),
            expands=_plain_logarithm,
        )
        for written in ("LOG10({})", "LOG2({})", "LOG({})")
    ),
    *(
        Entry(
            exp.Pow,
            f"POWER({{}}, {size})",
            (NUMBERS,),
            always(DOUBLE),
            {engine: _power(engine) for engine in ALL},
            ("this",),
            also=("expression",),
        )
        for size in ("2", "3", "0.5", "-1", "64")
    ),
    Entry(exp.IsNan, "ISNAN({})", (names(DOUBLE),), always(BOOLEAN), said(every=_IS_NAN)),
    Entry(exp.IsInf, "ISINF({})", (names(DOUBLE),), always(BOOLEAN), said(every=_IS_INFINITE)),
    _bit_entry(exp.BitwiseAnd, "{} & {}", every="{0} & {1}"),
    _bit_entry(exp.BitwiseOr, "{} | {}", every="{0} | {1}"),
    _bit_entry(
        exp.BitwiseXor,
        "XOR({}, {})",
        duckdb="XOR({0}, {1})",
        postgres="{0} # {1}",
        spark="{0} ^ {1}",
    ),
    _bit_entry(exp.BitwiseNot, "~({})", every="~({0})"),
    Entry(
        exp.BitwiseLeftShift,
        "{} << 3",
        (names(WHOLE),),
        expands=lambda node: expanded(f"{{0}} * {2 ** _shift(node)}", [node.this]),
    ),
    Entry(
        exp.BitwiseRightShift,
        "{} >> 3",
        (names(WHOLE),),
        always(WHOLE, 19, "bigint"),
        {engine: _shifted_right(engine) for engine in ALL},
        ("this",),
        also=("expression",),
    ),
)
"""Operators and functions of numbers."""
