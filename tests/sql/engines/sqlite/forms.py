"""SQLite's forms, of a few entries; the others are refused.

Its arithmetic does not fail: what overflows is a double, and a division by zero is NULL.
"""

from __future__ import annotations

from typing import Any

from tulle.sql.dialect import Dialect, Form
from tulle.sql.expressions import numbers
from tulle.sql.expressions.conversions import Typed
from tulle.sql.expressions.entry import as_written, doubles, said
from tulle.sql.expressions.kinds import DOUBLE, TEXT, WHOLE, Kind


def _arithmetic(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    return as_written(Kind(DOUBLE), "this", "expression")(node, doubles(given, dialect), dialect)


def _negative(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    return as_written(Kind(DOUBLE), "this")(node, doubles(given, dialect), dialect)


FORMS: dict[str, Form] = {
    "add": _arithmetic,
    "subtract": _arithmetic,
    "multiply": _arithmetic,
    "negate": _negative,
    "bits and": numbers.bits("{0} & {1}"),
    "lower": as_written(Kind(TEXT), "this"),
    "upper": as_written(Kind(TEXT), "this"),
    "length": as_written(Kind(WHOLE, 19), "this"),
    "position": said("INSTR({0}, {1})", Kind(WHOLE, 19)),
}
