"""DuckDB's SQL. Everything that could fail is under TRY or TRY_CAST."""

from __future__ import annotations

from dataclasses import replace
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
from tulle.sql.expressions.kinds import DOUBLE, TEXT, TIME, TIMESTAMP, WHOLE, Kind


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
    text_collation = None
    key_collation = '"C"'
    writes_offsets = True
    pattern_end = "$"
    interval_times = 1000
    gathers_first = False
    guards_functions = True

    def convert(self, given: Typed, kind: Kind, target: Any) -> Typed:
        if kind.name == TEXT:
            given = replace(given, node=_shown(given))
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


_TIMES = {
    TIME: ("TIME", "00:00:00", "24:00:00"),
    "time_ns": ("TIME_NS", "00:00:00", "24:00:00"),
    TIMESTAMP: ("TIMESTAMP", "290309-12-22 (BC) 00:00:00", "infinity"),
}
"""Types of which files and frames can bring values that DuckDB itself does not write, with the
least and the largest that it does."""


def _shown(given: Typed) -> Any:
    """Return a value that can be written as text, or NULL: TRY does not stop where there is none.

    That of a time outside of the day brings down the whole database.
    """
    found = _TIMES.get(given.kind.name) or _TIMES.get(given.kind.stored)
    if found is None:
        return given.node
    kind, low, high = found
    ends = [as_type(text(end), kind) for end in (low, high)]
    known: Any = exp.Between(this=exp.paren(given.node.copy()), low=ends[0], high=ends[1])
    if given.kind.name == TIMESTAMP:
        past = exp.EQ(
            this=exp.paren(given.node.copy()), expression=as_type(text("-infinity"), kind)
        )
        known = exp.Or(this=known, expression=past)
    return exp.Case(ifs=[exp.If(this=known, true=given.node)])
