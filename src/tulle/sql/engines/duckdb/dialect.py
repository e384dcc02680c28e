"""DuckDB's SQL. Everything that could fail is under TRY or TRY_CAST."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from tulle.core import registry
from tulle.sql.dialect import Dialect
from tulle.sql.engines.duckdb.forms import FORMS
from tulle.sql.expressions.conversions import (
    Typed,
    as_type,
    call,
    collated,
    text,
    tried,
    without_sign,
)
from tulle.sql.expressions.kinds import DOUBLE, TEXT, WHOLE, Kind


@registry.register("dialect", "database", "duckdb")
class DuckDBDialect(Dialect):
    """How statements are written for DuckDB."""

    name = "duckdb"
    title = "DuckDB"
    forms = FORMS
    usual_schema = "main"
    value_names = ("col{}", 0)
    sunday = 0
    exact = False
    wide = "HUGEINT"
    widens_sums = True
    owner_collation = '"C"'
    key_collation = '"C"'
    pattern_end = "$"
    interval_times = 1000
    gathers_first = False
    guards_functions = True

    def convert(self, given: Typed, kind: Kind, target: Any) -> Typed:
        return tried(given, kind, target)

    def cast_target(self, to: Any) -> Any:
        return to

    def whole_constant(self, digits: int) -> Kind:
        return Kind(WHOLE, max(10, digits))

    def function(self, made: Any, argument: Any) -> Any:
        # What occurs twice inside, or in two functions, would be worked out once beforehand and
        # outside of TRY; DuckDB leaves alone what is in a CASE.
        missing = exp.Is(this=exp.paren(argument.copy()), expression=exp.null())
        either = exp.Case(ifs=[exp.If(this=missing, true=made)], default=made.copy())
        return call("TRY", either)

    def same_value(self, given: Typed) -> Typed:
        if given.kind.name == DOUBLE:
            # What is not a number has two signs, like zero.
            none = exp.If(
                this=call("ISNAN", given.node.copy()), true=as_type(text("NaN"), "DOUBLE")
            )
            plain = without_sign(given.node)
            return Typed(exp.Case(ifs=[none], default=plain), Kind(DOUBLE), given.aggregate)
        # A column may be declared to take "Ann" for "ann".
        return collated(given, '"C"') if given.kind.name == TEXT else given

    def ordered_sum(self, value: str) -> str:
        return f"LIST_SUM(LIST_SORT(LIST({value})))"

    def nearest(self, value: str) -> str:
        return f"ROUND({value})"

    def whole_sum(self, value: str) -> str:
        return f"SUM({value})"

    def step_sum(self, value: str) -> str:
        return f"CAST(SUM({value}) AS DOUBLE)"

    def listed(self, texts: str) -> str:
        return (
            "(SELECT unnest(x.l) AS h, unnest(range(len(x.l))) AS p "
            f"FROM (SELECT string_split('{texts}', ',') AS l) x)"
        )
