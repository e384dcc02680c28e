"""Arithmetic and comparisons that give NULL, or a wider number, where an engine would stop.

Whether a question fails must not depend on single rows. Divisions and casts are taken care of
before (:func:`tulle.sql.scalars.guard`); what is left are numbers too large for their type, dates
beyond the calendar and texts that are compared with numbers or dates:

- DuckDB has TRY(...), which gives NULL for whatever its expression fails on;
- Spark has functions for sums, differences and products that give NULL, and TRY_CAST;
- PostgreSQL has neither, but refuses to compare texts with numbers before it looks at any row; its
  short whole numbers are widened to 64 bits, where a product of two of them fits.

It is the last step before a statement is written, so that nothing else has to know these forms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

_TYPES = exp.DataType
_SHORT = {_TYPES.Type.INT, _TYPES.Type.SMALLINT, _TYPES.Type.TINYINT}
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Abs)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_SPARK = {exp.Add: "TRY_ADD", exp.Sub: "TRY_SUBTRACT", exp.Mul: "TRY_MULTIPLY"}

_WIDEST = 28
"""Decimals of at most so many digits can be added ten thousand million times in 38 digits."""


def unfailing(tree: Any, dialect: str) -> Any:
    """Return the statement with expressions that do not fail on any row."""
    return tree.transform(_TREATED[dialect])


def may_overflow_when_added(expression: Any) -> bool:
    """Say whether a sum of such numbers may not fit the widest decimal that engines have."""
    kind = expression.type
    if kind is None:
        return False
    if kind.this in {_TYPES.Type.INT128, _TYPES.Type.UINT128, _TYPES.Type.INT256}:
        return True
    if kind.this == _TYPES.Type.DECIMAL and kind.expressions:
        return int(kind.expressions[0].name) > _WIDEST
    return False


def _in_duckdb(node: Any) -> Any:
    risky = isinstance(node, _ARITHMETIC) or _compares_texts(node)
    if not risky or _is_tried(node) or node.find(exp.AggFunc, exp.Window, exp.Query):
        return node
    if not node.find(exp.Column):
        # Constants are worked out before any row is looked at.
        return node
    return exp.Anonymous(this="TRY", expressions=[node.copy()])


def _is_tried(node: Any) -> bool:
    """Say whether an expression lies within TRY, which sees to all of it."""
    above = node.parent
    while above is not None and not isinstance(above, exp.Query):
        if isinstance(above, exp.Anonymous) and above.name == "TRY":
            return True
        above = above.parent
    return False


def _in_spark(node: Any) -> Any:
    name = _SPARK.get(type(node))
    if name is not None:
        return exp.Anonymous(this=name, expressions=[node.this, node.expression])
    if isinstance(node, exp.Neg) and node.find(exp.Column):
        return exp.Anonymous(this="TRY_SUBTRACT", expressions=[exp.Literal.number(0), node.this])
    if _compares_texts(node):
        for name, side in list(node.args.items()):
            if isinstance(side, exp.Expression) and _is_text(side):
                other = node.expression if name == "this" else node.this
                tried = exp.TryCast(this=side.copy(), to=_comparable(other), safe=True)
                node.set(name, tried)
    return node


def _in_postgres(node: Any) -> Any:
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Neg | exp.Abs) and _is_short(node):
        node.set("this", exp.cast(exp.paren(node.this.copy()), "BIGINT"))
    return node


_TREATED: dict[str, Callable[[Any], Any]] = {
    "duckdb": _in_duckdb,
    "spark": _in_spark,
    "postgres": _in_postgres,
}


def _is_short(node: Any) -> bool:
    """Say whether all columns below are whole numbers of at most 32 bits."""
    columns = list(node.find_all(exp.Column))
    return bool(columns) and all(
        column.type is not None and column.type.this in _SHORT for column in columns
    )


def _is_text(node: Any) -> bool:
    """Say whether an expression is a text that follows from the row."""
    kind = node.type
    return kind is not None and kind.this in _TYPES.TEXT_TYPES and node.find(exp.Column) is not None


def _compares_texts(node: Any) -> bool:
    """Say whether a text of the row is compared with a number, a date or a moment."""
    if isinstance(node, exp.In):
        sides = [node.this, *node.expressions]
    elif isinstance(node, exp.Between):
        sides = [node.this, node.args["low"], node.args["high"]]
    elif isinstance(node, _COMPARISONS):
        sides = [node.this, node.expression]
    else:
        return False
    others = {*_TYPES.NUMERIC_TYPES, *_TYPES.TEMPORAL_TYPES}
    return any(_is_text(side) for side in sides) and any(
        side.type is not None and side.type.this in others for side in sides
    )


def _comparable(other: Any) -> Any:
    temporal = other.type is not None and other.type.this in _TYPES.TEMPORAL_TYPES
    return other.type.copy() if temporal else exp.DataType.build("DOUBLE")
