"""Random statements over the whole supported grammar, over the tables of ``sql_worlds``.

A statement is put together from tables of parts, so that what is new in one of them is in the
statements by itself: functions and operators (``tulle.sql.expressions.total.ENTRIES`` and the
shapes of ``sql_extremes``), rows of any people (``sql_generator``), what is inside one person's
rows (``inside_generator``), views (``VIEWS``), values that are equal and yet differ (``ALIKE``),
aggregates with arithmetic on them (``AGGREGATES``, ``QUANTILES``; of dates, ``DATED``), and keys,
listed or to be found (``KEYS``). Some statements compare or divide by something else than the owner
where they should not: these are mostly refused, and whatever is accepted is judged like all others.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.sql.inside_generator import Inside
from tests.sql.sql_extremes import SHAPES
from tests.sql.sql_generator import NUMBERS, Generator

from tulle.sql.expressions import kinds
from tulle.sql.expressions.total import ENTRIES

AGGREGATES = (
    *("COUNT(*)", "COUNT({x})", "COUNT(DISTINCT {x})", "SUM({x})", "SUM(DISTINCT {x})"),
    *("AVG({x})", "VAR_POP({x})", "STDDEV_SAMP({x})", "COUNT_IF({x} > 1)"),
    *("SUM({x}) FILTER (WHERE {c})", "COUNT(*) FILTER (WHERE {c})"),
    *("SUM({x}) / NULLIF(COUNT(*), 0)", "COALESCE(AVG({x}), -1) + COUNT(*)"),
)
"""Aggregates of a number x, with a condition c, and what is computed with them."""

QUANTILES = (
    *("MIN({x})", "MAX({x})", "MEDIAN({x})", "QUANTILE_CONT({x}, 0.25)", "MAX({x}) - MIN({x})"),
    *("MEDIAN({x}) FILTER (WHERE {c})", "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY {x} DESC)"),
)
"""Of rows that belong to one person each, and numbers with a declared range."""

RANGED = (
    *(("person p", "p.age"), ("orders o", "o.price"), ("item i", "i.qty + i.sku")),
    ("orders o JOIN item i ON o.okey = i.okey", "o.price - i.qty"),
    ("(SELECT cust AS k, MAX(price) AS m FROM orders GROUP BY cust) g", "g.m"),
    ("(SELECT o.cust AS k, p.age AS m FROM orders o LEFT JOIN person p ON o.cust = p.id) g", "g.m"),
    ("adult a", "a.x"),
)
"""Such rows, each with such a number."""

DATED = (
    *(("reading r", "r.who", "r.seen"), ("reading r", "r.who", "r.heard")),
    ("reading r", "r.who", "COALESCE(r.seen, DATE '2020-02-29')"),
    ("reading r", "r.who", "CASE WHEN r.v > 0 THEN r.heard END"),
    ("(SELECT who AS k, MAX(seen) AS m FROM reading GROUP BY who) g", "g.k", "g.m"),
    ("(SELECT who AS k, MAX(seen) - MIN(seen) AS m FROM reading GROUP BY who) g", "g.k", "g.m"),
    ("reading r", "r.who", "DATE_DIFF('day', DATE '2001-01-01', r.seen)"),
)
"""Such rows, each with a number and with a date, a timestamp, or days between dates."""

READING = "who INTEGER, v DOUBLE, tag VARCHAR, seen DATE, heard TIMESTAMP"
VIEWS = (
    "CREATE VIEW adult AS SELECT id AS k, age AS x, id AS y FROM person WHERE age > 20",
    "CREATE VIEW bought AS SELECT o.cust AS k, i.sku AS x, i.qty AS y FROM orders o JOIN item i"
    " ON o.okey = i.okey",
    "CREATE VIEW spent AS SELECT cust AS k, COUNT(*) AS x, SUM(price) AS y FROM orders GROUP BY 1",
    "CREATE VIEW met AS SELECT a AS k, b AS x, w AS y FROM edge"
    " UNION SELECT pid, sid, minutes FROM visit",
    "CREATE VIEW late AS SELECT k, MAX(x) AS x, COUNT(*) AS y FROM (SELECT a.k, b.x FROM adult a"
    " LEFT JOIN bought b ON a.k = b.k) AS u GROUP BY k",
)
"""A table of numbers and names, and views; each of these has the columns k, x and y."""

OWNED_VIEWS = ("adult", "bought", "spent", "late")

ALIKE = (
    "SELECT DISTINCT v, tag FROM reading",
    "SELECT DISTINCT who, v, tag FROM reading",
    "SELECT v, tag FROM reading UNION SELECT v, tag FROM reading WHERE v IS NOT NULL",
    "SELECT v, tag FROM reading INTERSECT SELECT v, tag FROM reading",
    "SELECT who, v, tag FROM reading EXCEPT SELECT id, 7.0, city FROM person",
    "SELECT v, tag FROM reading WHERE EXISTS (SELECT 1 FROM edge WHERE a = who OR w > 0)",
    "SELECT v, tag FROM reading WHERE tag IN (SELECT tag FROM reading)",
    "SELECT who, v, MIN(tag) AS tag FROM reading GROUP BY who, v",
    "SELECT who, tag, MAX(v) AS v FROM reading GROUP BY who, tag",
    "SELECT who, v, tag, ROW_NUMBER() OVER (PARTITION BY who, v ORDER BY tag) AS r FROM reading",
    "SELECT DISTINCT ON (who, v) who, v, tag FROM reading ORDER BY who, v",
    "SELECT v, tag FROM reading WHERE v = ANY_OF",
    "SELECT r.v, q.tag FROM reading r JOIN reading q ON r.v = q.v",
    "SELECT who, v, tag FROM reading QUALIFY RANK() OVER (PARTITION BY who ORDER BY v) = 1",
    "SELECT v, tag FROM reading UNION ALL SELECT DISTINCT v, tag FROM reading",
    "SELECT CAST(v AS VARCHAR) AS v, tag FROM reading UNION SELECT v, tag FROM reading",
)
"""Rows whose values can be equal and yet differ: zeros of two signs, a name in two cases."""

SPELLED = (
    *("LENGTH(CAST({n}.v AS VARCHAR))", "STRPOS({n}.tag, 'a')", "STRPOS({n}.tag, 'A')"),
    "CASE WHEN CAST({n}.v AS VARCHAR) LIKE '-%' THEN 100 ELSE LENGTH({n}.tag) END",
    *("CASE WHEN {n}.tag LIKE 'a%' THEN 100 ELSE 1 END", "{n}.v"),
)
"""Numbers that tell how such a value is spelled."""

ELSEWHERE = (
    "SELECT {a} FROM person p LEFT JOIN orders o ON p.age - 20 = o.cust",
    "SELECT {a} FROM person p LEFT JOIN visit o ON p.age - 20 = o.pid WHERE o.pid IS NULL",
    "SELECT {a} FROM person p WHERE p.age - 20 NOT IN (SELECT cust FROM orders)",
    "SELECT {a} FROM person p WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.cust < p.id)",
    "SELECT {a} FROM person p WHERE p.id < (SELECT COUNT(*) FROM orders o)",
    "SELECT COUNT(*) FROM orders p WHERE p.price < (SELECT MAX(age) - 19 FROM person)",
    "SELECT COUNT(*) FROM (SELECT id - 1 AS k FROM person EXCEPT SELECT cust FROM orders) p",
    "SELECT COUNT(*) FROM (SELECT city, COUNT(*) AS n FROM person GROUP BY city) p WHERE n > 1",
)
"""What is about rows of others where it should be about one person's: refused, all of them."""

KEYS: tuple[tuple[str, Sequence[Any]], ...] = (
    ("{x}", [0, 1, 2, 3, 21, None]),
    ("{x} % 2", [0, 1, None]),
    ("CAST({x} AS VARCHAR)", ["1", "2", "3", "22", None]),
    ("CASE WHEN {x} > 1 THEN 1 ELSE 0 END", [0, 1]),
    ("CAST({x} AS DOUBLE)", [0.0, 1.0, 2.0, 22.0]),
    ("CASE WHEN {c} THEN 'yes' END", ["yes", None]),
)
"""What rows are grouped by, with values that everyone may know."""

FORMS = (
    *("({x}, {y}) IN ((1, 2), (2, 1), (3, 3))", "{x} = ANY([1, 2, 3])"),
    "{x} IS NOT DISTINCT FROM 2",
    "{x} IN (SELECT n FROM (VALUES (1), (2), (21)) AS t(n))",
    "({x} > 2 OR EXISTS (SELECT 1 FROM city WHERE city.name = 'ber'))",
    *("NOT ({x} IN (2, 3) OR {y} IS NULL)", "({x} NOT IN (2, 3)) IS TRUE"),
    "(DATE_ADD(DATE '2020-02-29', INTERVAL 1 YEAR) > DATE '2020-01-01' AND {x} > 0)",
)
"""Conditions on two numbers x and y that can be written in several ways."""

TRUTHS = (
    "{x} > 1",
    "{x} = 1 OR {y} > 2",
    "NOT {x} > 1 AND {y} > 0",
    "{x} IS NULL",
    "{x} IN (1, 2)",
)
"""Conditions that rows are grouped by; everyone may know that they hold, do not, or are unknown."""

LOOKED_UP = (
    "SUM(CASE WHEN {k} IN (SELECT cust FROM orders) THEN {x} END)",
    "COUNT(*) FILTER (WHERE NOT EXISTS (SELECT 1 FROM orders WHERE cust = {k}))",
    "SUM({x} + (SELECT COUNT(*) FROM orders WHERE cust = {k}))",
    "COUNT(*) FILTER (WHERE {x} > (SELECT MIN(age) - 20 FROM person WHERE id = {k}))",
    "SUM(CASE WHEN EXISTS (SELECT 1 FROM city WHERE city.name = 'ber') THEN {x} END)",
    "COUNT(*) FILTER (WHERE {x} IN (SELECT okey FROM orders WHERE price > 1))",
)
"""Aggregates of a number x of person k that look something up; the last looks at rows of others."""

DAYS = ("DATE '2020-02-29'", "DATE '1999-12-31'", "DATE '2024-03-01'")
MOMENTS = ("TIMESTAMP '2020-02-29 23:59:59'", "TIMESTAMP '1969-12-31 12:30:01'")
KINDS = {*kinds.NUMBERS, kinds.TEXT, kinds.BOOLEAN, kinds.DATE, kinds.TIMESTAMP}
TEXTS = ("'ams'", "'12'", "''", "'a-b-c'")


@dataclass(frozen=True)
class Asked:
    """A statement; by which columns it groups, and their values if everyone may know them."""

    text: str
    groups: Mapping[str, Sequence[Any]] | None = None
    keys: int = 0


class Grammar:
    """Writes one statement; the same seed writes the same one.

    ``loose`` is how often it looks at something else than the owner where it should not.
    """

    def __init__(self, seed: int, loose: float = 0.3) -> None:
        self.loose = loose
        self.draw = random.Random(seed)
        self.spelled = random.Random(-seed)
        """How a thing is written that can be written in two ways."""
        self.formed = random.Random(10**9 + seed)
        """Which of ``FORMS`` is added, if any."""
        self.looked = random.Random(2 * 10**9 + seed)
        """Which of ``TRUTHS`` and ``LOOKED_UP`` are in it, if any."""
        self.dated = random.Random(3 * 10**9 + seed)
        """Which of ``DATED`` is ranked, if any."""
        more = [f"SELECT k, x, y FROM {view}" for view in OWNED_VIEWS]
        more.append("SELECT who AS k, v AS x, who AS y FROM reading")
        self.inside = Inside(seed, more=more)
        tables = {"reading": ["who", "v"], "met": ["k", "x", "y"], "spent": ["k", "x", "y"]}
        self.plain = Generator(seed, NUMBERS | tables)
        # The two name what they write alike.
        self.plain.last = 500

    def question(self, depth: int = 1) -> Asked:
        """Return a statement: with one aggregate or several, plain or by keys."""
        kind = self.draw.random()
        if kind < 0.25:
            # As the two write them by themselves, with conditions over rows of others.
            own = self.draw.random() < 0.6
            return Asked(self.inside.question(depth) if own else self.plain.question())
        if kind < 0.35:
            return self.alike()
        if kind > 0.93:
            counted = self.draw.choice(["COUNT(*)", "COUNT(*)", "COUNT(DISTINCT p.id)"])
            return Asked(self.draw.choice(ELSEWHERE).format(a=counted))
        if kind > 0.87:
            name = self.inside.name()
            return Asked(f"SELECT SUM({name}.x) FROM ({self.inside.by_key(depth)}) {name}")
        several = self.draw.choice([1, 1, 1, 1, 2, 3])
        if kind < 0.42:
            (source, number), before, listed = self.draw.choice(RANGED), "", QUANTILES
            columns, numbers = re.findall(r"\w\.\w+", number), [number]
            if self.dated.random() < 0.4:
                source, column, date = self.dated.choice(DATED)
                columns, numbers = [column], [date]
        else:
            # Each aggregate compiles the rows anew: those of several are less deep.
            before, source, columns = self.source(depth - (several > 1 or kind < 0.5))
            numbers, listed = [self.number(columns) for _ in range(3)], AGGREGATES
        conditions = self.conditions(columns)
        if self.formed.random() < 0.15:
            x, y = (self.formed.choice(columns) for _ in "xy")
            conditions.append(self.formed.choice(FORMS).format(x=x, y=y))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        if several == 1 and kind >= 0.5:
            chosen = [self.single(columns)]
        else:
            chosen = [
                self.draw.choice(listed).format(
                    x=self.draw.choice(numbers), c=self.condition(columns)
                )
                for _ in range(several)
            ]
        own = [column for column in columns if column.endswith(".k")]
        if own and listed is AGGREGATES and self.looked.random() < 0.15:
            looked_up = self.looked.choice(LOOKED_UP)
            chosen[0] = looked_up.format(k=own[0], x=self.looked.choice(columns))
        return self.by_keys(before, chosen, f"{source}{where}", columns)

    def by_keys(self, before: str, chosen: list[str], rows: str, columns: list[str]) -> Asked:
        """Return the statement for all rows together, or by keys that are listed or found."""
        named = ", ".join(f"{one} AS a{place}" for place, one in enumerate(chosen))
        if self.draw.random() < 0.75:
            return Asked(f"{before}SELECT {named if len(chosen) > 1 else chosen[0]} FROM {rows}")
        drawn = [self.draw.choice(KEYS) for _ in range(self.draw.choice([1, 1, 2]))]
        keys = [
            written.format(x=self.draw.choice(columns), c=self.condition(columns))
            for written, _ in drawn
        ]
        if self.looked.random() < 0.2:
            x, y = (self.looked.choice(columns) for _ in "xy")
            keys[0] = self.looked.choice(TRUTHS).format(x=x, y=y)
            drawn[0] = keys[0], [True, False, None]
        listed = ", ".join(f"{key} AS g{place}" for place, key in enumerate(keys))
        after = self.draw.choice(["", "", " HAVING COUNT(*) > 1", " ORDER BY g0"])
        by = ", ".join([f"g{place}" for place in range(len(keys))])
        by = self.spelled.choice([by, by, "ALL"])
        text = f"{before}SELECT {listed}, {named} FROM {rows} GROUP BY {by}{after}"
        if self.draw.random() < 0.4:
            return Asked(text, None, len(keys))
        public = {f"g{place}": values for place, (_, values) in enumerate(drawn)}
        return Asked(text, public, len(keys))

    def alike(self) -> Asked:
        """Return a statement in which it shows how a value is spelled, were it not one."""
        name = self.plain.name()
        rows = self.draw.choice(ALIKE).replace("ANY_OF", "(0.0)")
        number = self.draw.choice(SPELLED).format(n=name)
        chosen = self.draw.choice(["SUM({})", "SUM({})", "COUNT(DISTINCT {})"]).format(number)
        more = self.draw.choice(["", "", f" WHERE EXISTS (SELECT 1 FROM edge WHERE w > {name}.v)"])
        if self.draw.random() < 0.2:
            keyed = f"SELECT {name}.tag AS g0, {chosen} AS a0 FROM ({rows}) {name}{more} GROUP BY 1"
            return Asked(keyed, {"g0": ["ann", "Ann", "aNN", "bob", None]}, 1)
        return Asked(f"SELECT {chosen} FROM ({rows}) {name}{more}")

    def source(self, depth: int) -> tuple[str, str, list[str]]:
        """Return what stands before SELECT, what after FROM, and the columns that are numbers."""
        kind = self.draw.random()
        if kind < 0.45:
            source, columns = self.plain.sources(self.draw.choice([1, 1, 2, 2, 3]), depth)
            return "", source, columns
        name = self.inside.name()
        shared = self.draw.random() < 0.2
        rows = self.inside.by_key(depth) if shared else self.inside.rows(depth)
        if self.draw.random() < self.loose:
            rows = self.loosened(rows)
        columns = [f"{name}.k", f"{name}.x", f"{name}.y"]
        if kind < 0.8:
            rows = self.spelled.choice([rows, rows, f"SELECT all_of.* FROM ({rows}) all_of"])
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
        if self.draw.random() < 0.25:
            found.append(self.plain.semi_join(columns))
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
