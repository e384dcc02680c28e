"""PostgreSQL's SQL, in which nothing is tried: what could fail is held within bounds before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tulle.core import registry
from tulle.sql.dialect import Dialect
from tulle.sql.engines.postgresql.conversions import USUAL, converted
from tulle.sql.engines.postgresql.forms import FORMS
from tulle.sql.expressions.conversions import (
    Impossible,
    Typed,
    as_type,
    call,
    collated,
    without_sign,
)
from tulle.sql.expressions.kinds import DECIMAL, DOUBLE, TEXT, WHOLE, Kind


@registry.register("dialect", "database", "postgres")
class PostgreSQLDialect(Dialect):
    """How statements are written for PostgreSQL."""

    name = "postgres"
    title = "PostgreSQL"
    forms = FORMS
    usual_schema = "public"
    value_names = ("column{}", 1)
    sunday = 0
    exact = True
    wide = "DECIMAL"
    widens_sums = True
    owner_collation = '"C"'
    text_collation = USUAL
    key_collation = '"C"'
    writes_offsets = True
    pattern_end = "$"
    interval_times = 1
    gathers_first = False
    guards_functions = False

    def convert(self, given: Typed, kind: Kind, target: Any) -> Typed:
        return converted(given, kind, target)

    def cast_target(self, to: Any) -> Any:
        return to

    def whole_constant(self, digits: int) -> Kind:
        return Kind(WHOLE, max(digits, 1))

    def function(self, made: Any, argument: Any) -> Any:
        raise Impossible("PostgreSQL may fail on a function of one's own")

    def same_value(self, given: Typed) -> Typed:
        name = given.kind.name
        if name == DOUBLE:
            return Typed(without_sign(given.node), Kind(DOUBLE), given.aggregate)
        if name == DECIMAL:
            return Typed(call("TRIM_SCALE", given.node), given.kind, given.aggregate)
        if name == TEXT:
            # Of char(3) and char(5) come texts that are equal and end in other numbers of blanks.
            return collated(replace(given, node=as_type(given.node, "TEXT")), USUAL)
        return given

    def ordered_sum(self, value: str) -> str:
        return f"SUM({value} ORDER BY {value})"

    def nearest(self, value: str) -> str:
        return f"ROUND({value})"

    def whole_sum(self, value: str) -> str:
        return f"SUM({value})"

    def step_sum(self, value: str) -> str:
        return f"CAST(SUM({value}) AS DOUBLE PRECISION)"

    def listed(self, texts: str) -> str:
        return (
            "(SELECT u.h AS h, u.o - 1 AS p "
            f"FROM unnest(string_to_array('{texts}', ',')) WITH ORDINALITY AS u(h, o))"
        )
