"""SQLite's SQL, as far as this engine speaks it."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from tests.sql.engines.sqlite.forms import FORMS

from tulle.core import registry
from tulle.sql.dialect import Dialect
from tulle.sql.expressions.conversions import Impossible, Typed, without_sign
from tulle.sql.expressions.kinds import DOUBLE, NUMBERS, TEXT, WHOLE, Kind


@registry.register("dialect", "database", "sqlite")
class SQLiteDialect(Dialect):
    """How statements are written for SQLite."""

    name = "sqlite"
    title = "SQLite"
    forms = FORMS
    usual_schema = "main"
    value_names = ("column{}", 1)
    sunday = 0
    exact = False
    wide = "INTEGER"
    widens_sums = True
    owner_collation = "BINARY"
    text_collation = None
    key_collation = "BINARY"
    writes_offsets = True
    pattern_end = "$"
    interval_times = 0
    gathers_first = False
    guards_functions = False

    def convert(self, given: Typed, kind: Kind, target: Any) -> Typed:
        if not ({given.kind.name, kind.name} <= NUMBERS or kind.name == TEXT):
            raise Impossible("this engine converts numbers, and anything to text")
        return Typed(exp.Cast(this=given.node, to=target), kind)

    def cast_target(self, to: Any) -> Any:
        return to

    def whole_constant(self, digits: int) -> Kind:
        return Kind(WHOLE, max(10, digits))

    def function(self, made: Any, argument: Any) -> Any:
        raise Impossible("SQLite may fail on a function of one's own")

    def same_value(self, given: Typed) -> Typed:
        if given.kind.name == DOUBLE:
            return Typed(without_sign(given.node), Kind(DOUBLE), given.aggregate)
        return given

    def ordered_sum(self, value: str) -> str:
        return f"SUM({value})"

    def nearest(self, value: str) -> str:
        return f"ROUND({value})"

    def whole_sum(self, value: str) -> str:
        return f"SUM({value})"

    def step_sum(self, value: str) -> str:
        return f"CAST(SUM({value}) AS DOUBLE)"

    def listed(self, texts: str) -> str:
        return (
            "(SELECT j.value AS h, j.key AS p FROM "
            f"json_each('[\"' || REPLACE('{texts}', ',', '\",\"') || '\"]') AS j)"
        )
