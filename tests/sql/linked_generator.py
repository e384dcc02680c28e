"""Random ways to link two tables of any owners, most of which look at rows of others.

These are mostly refused, and whatever is accepted is judged by leaving. What is linked may be
linked again, so that rows that one construct leaves out or pads meet the next one.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

SOURCES = (
    "SELECT id AS k, age AS x, id AS y FROM person",
    "SELECT cust AS k, okey AS x, 1 AS y FROM orders",
    "SELECT okey AS k, sku AS x, qty AS y FROM item",
    *("SELECT a AS k, w AS x, b AS y FROM edge", "SELECT b AS k, a AS x, w AS y FROM edge"),
    "SELECT pid AS k, sid AS x, minutes AS y FROM visit",
    "SELECT sid AS k, pid AS x, minutes AS y FROM visit",
    "SELECT LENGTH(name) - 2 AS k, LENGTH(region) AS x, 2 AS y FROM city",
    "SELECT o.cust AS k, i.sku AS x, i.qty AS y FROM orders o JOIN item i USING (okey)",
    "SELECT col0 AS k, col1 AS x, col0 AS y FROM (VALUES (1, 2), (2, 2), (3, 1), (NULL, 3)) v",
    *("SELECT k, x, y FROM adult", "SELECT k, x, y FROM spent", "SELECT k, x, y FROM met"),
)
"""Rows with the columns k, x and y; whoever they are of is in k, or in another one, or nowhere."""

LINKS = (
    *(
        f"SELECT {{k}} AS k, s.x AS x, t.y AS y FROM {{a}} s {word} {{b}} t ON {{on}}"
        for word in ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
    ),
    *(
        f"SELECT s.k, s.x, s.y FROM {{a}} s {word} JOIN {{b}} t ON {{on}}"
        for word in ("SEMI", "ANTI")
    ),
    *(
        f"SELECT k, s.x AS x, t.y AS y FROM {{a}} s {word} {{b}} t USING (k)"
        for word in ("JOIN", "LEFT JOIN", "FULL JOIN")
    ),
    "SELECT k, x, t.y AS y FROM {a} s LEFT JOIN {b} t USING (k, x)",
    "SELECT k, x, y FROM {a} s NATURAL JOIN {b} t",
    "SELECT {k} AS k, t.x AS x, s.y AS y FROM {a} s, {b} t WHERE {on}",
    *(
        f"SELECT k, x, {y} FROM {{a}} s {word} SELECT k, x, {y} FROM {{b}} t"
        for word in ("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")
        for y in ("y", "1 AS y")
    ),
)
CONDITIONS = (
    "EXISTS (SELECT 1 FROM {b} t WHERE {on})",
    "NOT EXISTS (SELECT 1 FROM {b} t WHERE {on})",
    "s.k IN (SELECT t.k FROM {b} t)",
    "s.k NOT IN (SELECT t.k FROM {b} t)",
    "s.x NOT IN (SELECT t.x FROM {b} t WHERE {on})",
    "s.x IN (SELECT t.y FROM {b} t WHERE {on})",
    "(s.k, s.x) IN (SELECT t.k, t.x FROM {b} t)",
    "s.x > (SELECT MAX(t.x) FROM {b} t WHERE {on})",
    "(s.x = 2 OR EXISTS (SELECT 1 FROM {b} t WHERE {on}))",
    "NOT (s.x = 2 AND EXISTS (SELECT 1 FROM {b} t WHERE {on}))",
    "(SELECT COUNT(*) FROM {b} t WHERE {on}) < 2",
    "s.k IN (SELECT t.k FROM {b} t GROUP BY t.k HAVING COUNT(*) = 1)",
    "EXISTS (SELECT 1 FROM {b} t WHERE {on} AND NOT EXISTS (SELECT 1 FROM {b} u WHERE u.k = t.k"
    " AND u.x < t.x))",
)
INSIDE = (
    "SELECT s.k, s.x, (SELECT {t} FROM {b} t WHERE {on}) AS y FROM {a} s",
    "SELECT s.{by} AS k, {s} AS x, COUNT(*) AS y FROM {a} s GROUP BY s.{by}",
    "SELECT s.{by} AS k, {s} AS x, COUNT(*) AS y FROM {a} s GROUP BY s.{by} HAVING COUNT(*) > 1",
    "SELECT DISTINCT s.k, s.x, s.y FROM {a} s",
    "SELECT DISTINCT s.{by} AS k, 1 AS x, 1 AS y FROM {a} s",
    "SELECT DISTINCT ON (s.{by}) s.k, s.x, s.y FROM {a} s ORDER BY s.{by}, s.x, s.y, s.k",
    "SELECT s.k, s.x, {s} OVER (PARTITION BY s.{by}) AS y FROM {a} s",
    "SELECT s.k, s.x, LEAD(s.x) OVER w AS y FROM {a} s"
    " WINDOW w AS (PARTITION BY s.{by} ORDER BY s.x, s.y, s.k)",
    "SELECT s.k, s.x, s.y FROM {a} s"
    " QUALIFY ROW_NUMBER() OVER (PARTITION BY s.{by} ORDER BY s.x NULLS FIRST, s.y, s.k) = 1",
    "SELECT s.k, s.x, s.y FROM {a} s QUALIFY COUNT(*) OVER (PARTITION BY s.{by}) < 2",
)
TOTALS = ("COUNT(*)", "MAX({}.x)", "SUM({}.y)", "COUNT({}.y)")
EQUAL = (*("s.k = t.k",) * 3, "s.k = t.x", "s.x = t.k", "s.x = t.x", "s.k < t.k")
MORE = ("", "", " AND s.x < t.x", " AND t.y > 1", " AND s.y = t.y")


class Linked:
    """Writes one statement; the same seed writes the same one."""

    def __init__(self, seed: int, sources: Sequence[str] = SOURCES) -> None:
        self.draw = random.Random(seed)
        self.sources = sources

    def question(self, depth: int = 1) -> str:
        """Return a COUNT or SUM of rows that are linked, and linked again so many times."""
        total = self.draw.choice(["COUNT(*)", "SUM(q.{})", "COUNT(q.{})", "COUNT(DISTINCT q.{})"])
        return f"SELECT {total.format(self.draw.choice('kxy'))} FROM ({self.rows(depth)}) q"

    def rows(self, depth: int) -> str:
        """Return rows with the columns k, x and y."""
        if depth < 0:
            return self.draw.choice(self.sources)
        # One side is as deep as asked for, the other may be a table.
        depths = [depth - 1, self.draw.choice([depth - 1, -1])]
        self.draw.shuffle(depths)
        a, b = (f"({self.rows(one)})" for one in depths)
        written = self.draw.choice((LINKS, CONDITIONS, INSIDE))
        chosen = self.draw.choice(written)
        if written is CONDITIONS:
            chosen = f"SELECT s.k, s.x, s.y FROM {{a}} s WHERE {chosen}"
        total = self.draw.choice(TOTALS)
        return chosen.format(
            a=a,
            b=b,
            on=self.draw.choice(EQUAL) + self.draw.choice(MORE),
            k=self.draw.choice(["s.k", "s.k", "t.k", "COALESCE(s.k, t.k)"]),
            by=self.draw.choice("kkkx"),
            s=total.format("s"),
            t=total.format("t"),
        )
