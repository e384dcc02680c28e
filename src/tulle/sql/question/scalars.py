"""Which expressions over one row are supported, before any schema is known."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.generator import Generator

from tulle.core.errors import QueryError
from tulle.sql.dialect import guarding
from tulle.sql.expressions.total import ENTRIES

_PLAIN: set[type[Any]] = {
    *(entry.node for entry in ENTRIES),
    *(exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.Boolean, exp.Paren, exp.Var),
    *(exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is),
    *(exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In, exp.Tuple),
    *(exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least),
    *(exp.Concat, exp.DPipe, exp.Cast, exp.TryCast, exp.DataType, exp.DataTypeParam, exp.Interval),
}
"""Expressions whose value follows from the row alone. Everything else is refused.

What they do to which kinds of values is in :mod:`tulle.sql.expressions.total` and
:mod:`tulle.sql.compile.statements`; here no schema is known yet.
"""

_VOLATILE = {
    *("now", "random", "rand", "randn", "uuid", "gen_random_uuid", "nextval", "currval"),
    *("clock_timestamp", "statement_timestamp", "transaction_timestamp", "timeofday", "today"),
    *("setseed", "pg_sleep", "txid_current", "current_setting", "getdate", "sysdate", "rowid"),
    *("monotonically_increasing_id", "row_number", "lastval", "shuffle", "txid"),
}

_MOMENTS = {
    *("CurrentDate", "CurrentTime", "CurrentTimestamp", "CurrentDatetime", "Rand", "Randn"),
    *("Uuid", "Localtime", "Localtimestamp", "CurrentUser", "SessionUser", "UtcTimestamp"),
}


def check_scalar(tree: Any, place: str, functions: Collection[str]) -> None:
    """Check an expression over one row.

    Raises:
        QueryError: naming the expression, the clause it is in and the reason.
    """
    for node in tree.walk():
        if type(node) in _PLAIN and not _odd(node):
            continue
        if isinstance(node, exp.Anonymous) and node.name.lower() in functions:
            continue
        raise QueryError(f"{_shown(node)} in {place} is not supported: {_reason(node)}.")


def _odd(node: Any) -> bool:
    """Say whether a plain expression is used in a way that is not plain."""
    if isinstance(node, exp.In):
        return any(
            value for name, value in node.args.items() if name not in {"this", "expressions"}
        )
    if isinstance(node, exp.Substring | exp.Round):
        # A negative length fails in some engines: whether it does must not depend on the row.
        extra = [v for n, v in node.args.items() if n != "this" and isinstance(v, exp.Expression)]
        plain = [value.this if isinstance(value, exp.Neg) else value for value in extra]
        return not all(isinstance(value, exp.Literal) for value in plain)
    return False


_USUAL_WORDS = {
    "LOGICAL_OR": "BOOL_OR",
    "LOGICAL_AND": "BOOL_AND",
    "GROUP_CONCAT": "STRING_AGG",
    "LISTAGG": "STRING_AGG",
    "VARIANCE": "VAR_SAMP",
    "TIME_TO_UNIX": "EPOCH",
    "BITWISE_OR_AGG": "BIT_OR",
    "BITWISE_AND_AGG": "BIT_AND",
    "BITWISE_XOR_AGG": "BIT_XOR",
}
"""Where the parser's word for a function is not the one that people write."""

_PARSER_WORDS = re.compile(rf"\b({'|'.join(_USUAL_WORDS)})\(")


def _quantile(writer: Any, node: Any) -> str:
    """Return a quantile; with what it is of as its argument, it is written QUANTILE_..."""
    if node.expression is None:
        return str(writer.function_fallback_sql(node))
    word = "QUANTILE_CONT" if isinstance(node, exp.PercentileCont) else "QUANTILE_DISC"
    return str(writer.func(word, node.this, node.expression))


class _Reading(Generator):
    """Writes SQL of no dialect, for reading."""

    TRANSFORMS: ClassVar[Any] = {
        **Generator.TRANSFORMS,
        exp.Array: lambda writer, node: f"[{writer.expressions(node, flat=True)}]",
        exp.PercentileCont: _quantile,
        exp.PercentileDisc: _quantile,
    }


def as_written(node: Any, dialect: str | None = None) -> str:
    """Return an expression as people write it, for reading.

    Example:
        >>> import sqlglot
        >>> as_written(sqlglot.parse_one("VAR_SAMP(x)"))
        'VAR_SAMP(x)'
        >>> as_written(sqlglot.parse_one("QUANTILE_CONT(x, [0.1, 0.9])", read="duckdb"))
        'QUANTILE_CONT(x, [0.1, 0.9])'
    """
    text = str(node.sql(dialect=dialect) if dialect else _Reading().generate(node, copy=True))
    return _PARSER_WORDS.sub(lambda found: f"{_USUAL_WORDS[found[1]]}(", text)


def _shown(node: Any) -> str:
    text = as_written(node)
    if isinstance(node, exp.Exists | exp.In) and node.find_ancestor(exp.Not):
        text = (
            f"NOT {text}" if isinstance(node, exp.Exists) else text.replace(" IN ", " NOT IN ", 1)
        )
    return text if len(text) <= 60 else text[:57] + "..."


def _reason(node: Any) -> str:
    if isinstance(node, exp.Substring | exp.Round):
        return "its further arguments must be written as numbers"
    if isinstance(node, exp.Exists | exp.In | exp.Any | exp.All):
        above = node.find_ancestor(exp.Not)
        if isinstance(node, exp.Any | exp.All) and node.find(exp.Query) is None:
            return "write x IN (...), conditions that are joined by OR, or (SELECT MAX(y) ...)"
        if above is not None or isinstance(node, exp.All):
            return "rows would appear when somebody leaves"
        return "a sub-select must be a condition of its own in WHERE, joined by AND"
    if isinstance(node, exp.Query):
        return "a sub-select that stands for one value changes when somebody leaves"
    if isinstance(node, exp.Window | exp.RowNumber):
        return "windows rank rows against each other"
    if isinstance(node, exp.Filter):
        return "put the condition into WHERE, or use SUM(CASE WHEN ... THEN 1 ELSE 0 END)"
    if isinstance(node, exp.AggFunc):
        return "an aggregate inside changes its value when somebody leaves"
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    if type(node).__name__ in _MOMENTS or name in _VOLATILE:
        return (
            "it is volatile: it gives another value each time. Write the value itself, such as "
            "DATE '2024-12-31'"
        )
    if isinstance(node, exp.Anonymous):
        return (
            "nothing is known about this function. If its value follows from its arguments alone "
            f"allow it, on {guarding()}: tulle.sql(..., functions=[{name!r}])"
        )
    if isinstance(node, exp.Placeholder | exp.Parameter):
        return "write the value into the query"
    return "it is not among the expressions that are known to be safe"
