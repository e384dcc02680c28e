"""Spark's SQL. What could fail is computed by its try_ functions and TRY_CAST."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlglot import exp

from tulle.core import registry
from tulle.sql.dialect import Dialect
from tulle.sql.engines.spark.forms import FORMS, near
from tulle.sql.expressions import kinds
from tulle.sql.expressions.conversions import Impossible, Typed, tried, without_sign
from tulle.sql.expressions.kinds import DAYS, DECIMAL, DOUBLE, WHOLE, Kind, named_type


@registry.register("dialect", "database", "spark")
class SparkDialect(Dialect):
    """How statements are written for Spark."""

    name = "spark"
    title = "Spark"
    forms = FORMS
    usual_schema = "default"
    value_names = ("col{}", 1)
    sunday = 1
    exact = False
    wide = "DECIMAL(38, 0)"
    widens_sums = False
    owner_collation = None
    text_collation = None
    key_collation = "UTF8_BINARY"
    writes_offsets = False
    # Java's $ also stands before a line feed at the end: nothing may follow, instead.
    pattern_end = "(?![^a]|a)"
    interval_times = 1000
    gathers_first = True
    guards_functions = False

    def convert(self, given: Typed, kind: Kind, target: Any) -> Typed:
        if kind.name in {kinds.TIME, kinds.UUID}:
            raise Impossible("Spark has no such type")
        days = given.kind.name in DAYS and kind.name in DAYS
        if days and given.kind.name != kind.name:
            given = replace(given, node=near(given))
        return tried(given, kind, target)

    def cast_target(self, to: Any) -> Any:
        plain = to.this == exp.DataType.Type.TIMESTAMP
        return named_type("TIMESTAMPNTZ") if plain else to

    def whole_constant(self, digits: int) -> Kind:
        return Kind(DECIMAL, digits) if digits > 19 else Kind(WHOLE, max(10, digits))

    def function(self, made: Any, argument: Any) -> Any:
        raise Impossible("Spark may fail on a function of one's own")

    def same_value(self, given: Typed) -> Typed:
        if given.kind.name == DOUBLE:
            return Typed(without_sign(given.node), Kind(DOUBLE), given.aggregate)
        return given

    def ordered_sum(self, value: str) -> str:
        listed = f"ARRAY_SORT(COLLECT_LIST({value}))"
        return f"AGGREGATE({listed}, CAST(0 AS DOUBLE), (one, other) -> one + other)"

    def nearest(self, value: str) -> str:
        return f"RINT({value})"

    def whole_sum(self, value: str) -> str:
        high, low = _halves(value)
        return f"(CAST({high} AS DECIMAL(38, 0)) * {_HALF} + {low})"

    def step_sum(self, value: str) -> str:
        high, low = _halves(value)
        return f"(CAST({high} AS DOUBLE) * CAST({_HALF} AS DOUBLE) + CAST({low} AS DOUBLE))"

    def listed(self, texts: str) -> str:
        return f"(SELECT posexplode(split('{texts}', ',')) AS (p, h))"


_BITS = 30
_HALF = 2**_BITS


def _halves(value: str) -> tuple[str, str]:
    """Return the sums of the upper and of the lower bits of whole numbers.

    Numbers of 64 bits are added many times faster than wider ones, and these sums fit for less than
    2**29 rows of any numbers; beyond that TRY_SUM is NULL, where SUM would stop.
    """
    return f"TRY_SUM(SHIFTRIGHT({value}, {_BITS}))", f"TRY_SUM({value} & {_HALF - 1})"
