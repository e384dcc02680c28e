"""Random statements over the whole supported grammar, over the tables of ``sql_worlds``.

A statement is put together from four tables of parts, so that what is new in one of them is in the
statements by itself: functions and operators (``tulle.sql.expressions.total.ENTRIES`` and the
shapes of ``sql_extremes``), rows of any people (``sql_generator``), what is inside one person's
rows (``inside_generator``), and aggregates with arithmetic on them (``AGGREGATES``). Some
statements compare or divide by something else than the owner where they should not: these are
mostly refused, and whatever is accepted is judged like all others.
"""

from __future__ import annotations

import random
import re

from tests.sql.inside_generator import Inside
from tests.sql.sql_extremes import SHAPES
from tests.sql.sql_generator import Generator

from tulle.sql.expressions import kinds
from tulle.sql.expressions.total import ENTRIES

AGGREGATES = (
    *("COUNT(*)", "COUNT({x})", "COUNT(DISTINCT {x})", "SUM({x})", "SUM(DISTINCT {x})"),
    *("AVG({x})", "VAR_POP({x})", "STDDEV_SAMP({x})", "COUNT_IF({x} > 1)"),
    *("SUM({x}) FILTER (WHERE {c})", "COUNT(*) FILTER (WHERE {c})"),
    *("SUM({x}) / NULLIF(COUNT(*), 0)", "COALESCE(AVG({x}), -1) + COUNT(*)"),
)
"""Aggregates of a number x, with a condition c, and what is computed with them."""

DAYS = ("DATE '2020-02-29'", "DATE '1999-12-31'", "DATE '2024-03-01'")
MOMENTS = ("TIMESTAMP '2020-02-29 23:59:59'", "TIMESTAMP '1969-12-31 12:30:01'")
KINDS = {*kinds.NUMBERS, kinds.TEXT, kinds.BOOLEAN, kinds.DATE, kinds.TIMESTAMP}
TEXTS = ("'ams'", "'12'", "''", "'a-b-c'")


class Grammar:
    """Writes one statement; the same seed writes the same one.

    ``loose`` is how often it looks at something else than the owner where it should not.
    """

    def __init__(self, seed: int, loose: float = 0.3) -> None:
        self.loose = loose
        self.draw = random.Random(seed)
        self.inside = Inside(seed)
        self.plain = Generator(seed)
        # The two name what they write alike.
        self.plain.last = 500

    def question(self, depth: int = 1, *, table: bool | None = None) -> str:
        """Return a statement with one aggregate, or with several, whose answer is a table."""
        several = self.draw.random() < 0.25 if table is None else table
        if not several and self.draw.random() < 0.3:
            # As the two write them by themselves, with conditions over rows of others.
            own = self.draw.random() < 0.5
            return self.inside.question(depth) if own else self.plain.question()
        before, source, columns = self.source(depth)
        conditions = self.conditions(columns)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        if not several:
            return f"{before}SELECT {self.single(columns)} FROM {source}{where}"
        count = self.draw.choice([2, 2, 3])
        listed = [
            self.draw.choice(AGGREGATES).format(x=self.number(columns), c=self.condition(columns))
            for _ in range(count)
        ]
        named = ", ".join(f"{one} AS a{place}" for place, one in enumerate(listed))
        return f"{before}SELECT {named} FROM {source}{where}"

    def source(self, depth: int) -> tuple[str, str, list[str]]:
        """Return what stands before SELECT, what after FROM, and the columns that are numbers."""
        kind = self.draw.random()
        if kind < 0.45:
            source, columns = self.plain.sources(self.draw.choice([1, 1, 2, 2, 3]), depth)
            return "", source, columns
        name = self.inside.name()
        rows = self.inside.rows(depth)
        if self.draw.random() < self.loose:
            rows = self.loosened(rows)
        columns = [f"{name}.k", f"{name}.x", f"{name}.y"]
        if kind < 0.8:
            return "", f"({rows}) {name}", columns
        if kind < 0.9:
            return f"WITH w AS ({rows}) ", f"w {name}, w v{name}", [*columns, f"v{name}.x"]
        joined = self.draw.choice(
            [
                (f"({rows}) {name} JOIN edge e ON e.b = {name}.x", ["e.a", "e.w"]),
                (f"edge e LEFT JOIN ({rows}) {name} ON {name}.k = e.a", ["e.b", "e.w"]),
                (f"({rows}) {name} JOIN city c ON c.name = 'ber'", []),
            ]
        )
        return "", joined[0], [*columns, *joined[1]]

    def loosened(self, rows: str) -> str:
        """Return a sub-select that looks at a number in one place where it looked at the owner."""
        places = [
            found.end() - 1
            for found in re.finditer(r"(?:GROUP BY|PARTITION BY|ON|WHERE) s\d+\.k\b", rows)
        ]
        if not places:
            return rows
        place = self.draw.choice(places)
        return f"{rows[:place]}x{rows[place + 1 :]}"

    def conditions(self, columns: list[str]) -> list[str]:
        found = [self.condition(columns) for _ in range(self.draw.choice([0, 0, 1, 1, 2]))]
        own = [column.partition(".")[0] for column in columns if column.endswith(".k")]
        if own and self.draw.random() < 0.2:
            found.append(self.inside.where(own[0], 1).removeprefix(" WHERE "))
        return found

    def condition(self, columns: list[str]) -> str:
        """Return what is true of a row or not; half of them are made of functions."""
        if self.draw.random() < 0.5:
            return self.plain.condition(columns)
        return self.draw.choice(
            ["({}) IS NOT NULL", "({}) IS NULL", "({0}) = ({0})", "NOT (({0}) <> ({0}))"]
        ).format(self.expression(columns))

    def single(self, columns: list[str]) -> str:
        if self.draw.random() < 0.35:
            counted = self.draw.choice(["COUNT({})", "COUNT(DISTINCT {})"])
            return counted.format(self.expression(columns))
        return self.draw.choice(AGGREGATES[:5]).format(x=self.number(columns), c="TRUE")

    def number(self, columns: list[str]) -> str:
        return self.plain.value(columns)

    def expression(self, columns: list[str]) -> str:
        """Return a function or an operator over the row: any of those that are supported."""
        if self.draw.random() < 0.25:
            shape = self.draw.choice(SHAPES).replace("x.b", f"{columns[0]} > 1")
            kind = self.draw.choice([kinds.WHOLE, kinds.WHOLE, kinds.TEXT, kinds.DATE])
            return shape.format(*(self.leaf(kind, columns) for _ in range(3)))
        entry = self.draw.choice(ENTRIES)
        takes = [t for t in entry.takes if kinds.INTERVAL not in t][: entry.written.count("{}")]
        chosen = [
            self.leaf(self.draw.choice(sorted(t & KINDS) or sorted(t)), columns) for t in takes
        ]
        return entry.written.format(*chosen)

    def leaf(self, kind: str, columns: list[str]) -> str:
        """Return a value of a kind, made of a number of the row."""
        column = self.draw.choice(columns)
        made = {
            kinds.WHOLE: [column, f"CAST({column} AS BIGINT)"],
            kinds.DECIMAL: [f"CAST({column} AS DECIMAL(12, 2))"],
            kinds.DOUBLE: [f"CAST({column} AS DOUBLE)"],
            kinds.TEXT: [f"CAST(CAST({column} AS INTEGER) AS VARCHAR)", *TEXTS],
            kinds.BOOLEAN: [f"{column} > 1", f"{column} IS NULL"],
            kinds.DATE: [f"CASE WHEN {column} > 1 THEN {day} END" for day in DAYS],
            kinds.TIMESTAMP: [f"CASE WHEN {column} > 1 THEN {one} END" for one in MOMENTS],
        }
        return self.draw.choice(made.get(kind, [column]))
