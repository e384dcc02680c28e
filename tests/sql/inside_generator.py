"""Random questions about what is inside one person's rows, over the tables of ``sql_worlds``."""

from __future__ import annotations

import random
from collections.abc import Sequence

SENSITIVE = ("ROW_NUMBER()", "LAG({x})", "LEAD({x}, 2)", "FIRST_VALUE({x})")
PLAIN = ("RANK()", "DENSE_RANK()", "SUM({x})", "COUNT({x})", "MIN({x})", "MAX({x})", "COUNT(*)")


LOOKED_FOR = (
    "CAST(MEDIAN(CAST({x} AS DOUBLE)) AS DECIMAL(18, 3))",
    "CAST(QUANTILE_CONT(CAST({x} AS DOUBLE), 0.3) AS DECIMAL(18, 3))",
    "CAST(PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY CAST({x} AS DOUBLE) DESC) AS DECIMAL(18, 3))",
    "CASE WHEN BOOL_OR({x} > 1) THEN 1 WHEN BOOL_AND({x} > 0) THEN 2 END",
    "CAST(STDDEV_SAMP({x}) + 0.00001 AS DECIMAL(18, 3))",
    "CAST(VAR_POP({x}) FILTER (WHERE {y} > 1) + 0.00001 AS DECIMAL(18, 3))",
    *("ARG_MAX({x} % 3, {x})", "ARG_MIN({x}, {x}) FILTER (WHERE {y} IS NOT NULL)"),
)
"""Aggregates that are looked for among the rows of a group, or made of several sums."""


class Inside:
    """Writes sub-selects with the columns k (the owner), x and y (numbers, or NULL).

    Where an order decides, it is by all columns: an engine's own answer is then one.
    """

    def __init__(self, seed: int, engine: str = "duckdb", more: Sequence[str] = ()) -> None:
        self.draw = random.Random(seed)
        self.sought = random.Random(3 * 10**9 + seed)
        """Which of ``LOOKED_FOR`` takes the place of an aggregate, if any."""
        self.engine = engine
        self.more = more
        self.last = 0

    def name(self) -> str:
        self.last += 1
        return f"s{self.last}"

    def question(self, depth: int = 2) -> str:
        inner, name = self.rows(depth), self.name()
        where = self.where(name, depth) if self.draw.random() < 0.4 else ""
        # Whether NULL is among other people's rows depends on them.
        padded = f"{name}.k NOT IN" in where
        aggregate = self.draw.choice(
            ["COUNT(*)", f"SUM({name}.x)", f"COUNT({name}.y)", f"COUNT(DISTINCT {name}.x)"]
        )
        source = self.draw.choice(
            [
                f"({inner}) {name}",
                f"({inner}) {name}",
                f"({inner}) {name} JOIN edge e ON e.b = {name}.x",
                f"edge e LEFT JOIN ({inner}) {name} ON {name}.k = e.a",
                f"({inner}) {name} RIGHT JOIN edge e ON {name}.k = e.a AND {name}.x < e.w",
                f"visit v JOIN person p ON v.pid = p.id LEFT JOIN ({inner}) {name}"
                f" ON {name}.k = v.pid AND {name}.x > v.minutes",
            ][: 3 if padded else 6]
        )
        if self.draw.random() < 0.2:
            return f"WITH w AS ({inner}) SELECT {aggregate} FROM w {name}, w v{where}"
        return f"SELECT {aggregate} FROM {source}{where}"

    def rows(self, depth: int) -> str:
        if depth == 0:
            return self.base()
        kinds = [
            *(self.group, self.group, self.left, self.left, self.inner, self.window),
            *(self.first, self.set_operation, self.filtered, self.filtered, self.distinct),
            *(self.public, self.path, self.path, self.selected, self.right, self.full),
        ]
        return self.draw.choice(kinds)(depth - 1)

    def tables(self) -> list[str]:
        return [
            "SELECT id AS k, age AS x, id AS y FROM person",
            "SELECT cust AS k, okey AS x, price AS y FROM orders",
            "SELECT cust AS k, okey AS x, price AS y FROM orders WHERE note = 'x'",
            *self.more,
        ]

    def base(self) -> str:
        return self.draw.choice(
            [
                *self.tables(),
                "SELECT o.cust AS k, i.sku AS x, i.qty AS y FROM orders o JOIN item i"
                " ON o.okey = i.okey",
                "SELECT id AS k, age - id AS x, CASE WHEN city = 'ams' THEN 1 END AS y FROM person",
            ]
        )

    def group(self, depth: int) -> str:
        n = self.name()
        more, by = self.draw.choice([("", ""), ("", f", {n}.x"), ("", f", {n}.x % 2")])
        having = self.draw.choice(
            ["", "", " HAVING COUNT(*) > 1", f" HAVING SUM({n}.x) > 3 OR MIN({n}.y) IS NULL"]
        )
        one = f"{n}.x" if by == f", {n}.x" else self.aggregate(n)
        return (
            f"SELECT {n}.k AS k, {one} AS x, {self.aggregate(n)} AS y{more}"
            f" FROM ({self.rows(depth)}) {n} GROUP BY {n}.k{by}{having}"
        )

    def aggregate(self, n: str, *, alone: bool = False) -> str:
        """Return an aggregate; one that stands ``alone`` for a value is looked for in no group."""
        x = self.draw.choice([f"{n}.x", f"{n}.y"])
        usual = self.draw.choice(
            [
                *("COUNT(*)", f"COUNT({x})", f"SUM({x})", f"MIN({x})", f"MAX({x})"),
                *(f"COUNT(DISTINCT {x})", f"SUM(DISTINCT {x})", f"SUM({x}) - MIN({x})"),
                f"SUM({x}) FILTER (WHERE {n}.x > 1)",
                f"CAST(AVG({x}) AS DECIMAL(18, 3))",
                f"SUM(CASE WHEN {n}.y IS NULL THEN 1 ELSE {n}.x END)",
            ]
        )
        if alone or self.sought.random() < 0.8:
            return usual
        return self.sought.choice(LOOKED_FOR).format(x=x, y=f"{n}.y")

    def left(self, depth: int) -> str:
        a, b = self.name(), self.name()
        on = self.draw.choice(["", f" AND {a}.x < {b}.x", f" AND {b}.y IS NULL", f" AND {a}.y = 2"])
        y = self.draw.choice([f"{b}.y", f"COALESCE({b}.x, {a}.y)", f"{b}.x"])
        return (
            f"SELECT {a}.k AS k, {a}.x AS x, {y} AS y FROM ({self.rows(depth)}) {a}"
            f" LEFT JOIN ({self.rows(depth)}) {b} ON {a}.k = {b}.k{on}{self.where(a, 0)}"
        )

    def right(self, depth: int) -> str:
        a, b = self.name(), self.name()
        on = self.draw.choice(["", f" AND {a}.x < {b}.x", f" AND {b}.y IS NULL"])
        return (
            f"SELECT {a}.k AS k, {a}.x AS x, COALESCE({b}.x, {a}.y) AS y FROM ({self.rows(depth)})"
            f" {b} RIGHT JOIN ({self.rows(depth)}) {a} ON {a}.k = {b}.k{on}{self.where(a, 0)}"
        )

    def full(self, depth: int) -> str:
        """Rows of one table or groups: what joins several has too many ways for a group of it."""
        a, b = self.name(), self.name()
        y = self.draw.choice([f"{b}.y", f"COALESCE({a}.x, {b}.x)"])
        sides = [
            self.group(0) if self.draw.random() < 0.3 else self.draw.choice(self.tables())
            for _ in range(2)
        ]
        return (
            f"SELECT k AS k, {a}.x AS x, {y} AS y FROM ({sides[0]}) {a}"
            f" FULL JOIN ({sides[1]}) {b} USING (k)"
        )

    def inner(self, depth: int) -> str:
        a, b = self.name(), self.name()
        return (
            f"SELECT {b}.k AS k, {a}.x AS x, {b}.y AS y FROM ({self.rows(depth)}) {a}"
            f" JOIN ({self.rows(depth)}) {b} ON {a}.k = {b}.k{self.where(b, 0)}"
        )

    def window(self, depth: int) -> str:
        n = self.name()
        by = self.draw.choice([f"{n}.k", f"{n}.k, {n}.x", f"{n}.x, {n}.k"])
        every = f"{n}.k, {n}.x, {n}.y"
        down = self.draw.choice(["", f"{n}.y DESC, "])
        if self.draw.random() < 0.5:
            function = self.draw.choice(SENSITIVE).format(x=f"{n}.x")
            over = f"PARTITION BY {by} ORDER BY {down}{every}"
        else:
            function = self.draw.choice(PLAIN).format(x=f"{n}.x")
            over = self.draw.choice(
                [
                    f"PARTITION BY {by} ORDER BY {n}.y",
                    f"PARTITION BY {by} ORDER BY {down}{n}.x",
                    *([f"PARTITION BY {by}"] if "RANK" not in function else []),
                ]
            )
            if "RANK" not in function and self.draw.random() < 0.4:
                frame = self.draw.choice(["1 PRECEDING", "UNBOUNDED PRECEDING", "2 PRECEDING"])
                over = f"PARTITION BY {by} ORDER BY {every} ROWS BETWEEN {frame} AND CURRENT ROW"
        return (
            f"SELECT {n}.k AS k, {function} OVER ({over}) AS x, {n}.y AS y"
            f" FROM ({self.rows(depth)}) {n}"
        )

    def first(self, depth: int) -> str:
        n = self.name()
        inner = self.rows(depth)
        every = f"{n}.k, {n}.x, {n}.y"
        if self.draw.random() < 0.5 and self.engine != "spark":
            chosen = f"SELECT DISTINCT ON ({n}.k) {n}.k, {n}.x, {n}.y"
            return f"{chosen} FROM ({inner}) {n} ORDER BY {every}"
        most = self.draw.choice([1, 2])
        window = f"ROW_NUMBER() OVER (PARTITION BY {n}.k ORDER BY {n}.y DESC, {every})"
        if self.engine == "postgres":
            return (
                f"SELECT q{n}.k AS k, q{n}.x AS x, q{n}.y AS y FROM (SELECT {n}.k AS k, {n}.x AS x,"
                f" {n}.y AS y, {window} AS r FROM ({inner}) {n}) q{n} WHERE q{n}.r <= {most}"
            )
        return f"SELECT {n}.k, {n}.x, {n}.y FROM ({inner}) {n} QUALIFY {window} <= {most}"

    def set_operation(self, depth: int) -> str:
        words = ["EXCEPT", "EXCEPT ALL", "INTERSECT ALL", "UNION ALL"]
        one, other = self.name(), self.name()
        sides = [
            f"SELECT {n}.k AS k, {n}.x AS x, 1 AS y FROM ({self.rows(depth)}) {n}"
            for n in (one, other)
        ]
        return f"{sides[0]} {self.draw.choice(words)} {sides[1]}"

    def filtered(self, depth: int) -> str:
        n = self.name()
        return (
            f"SELECT {n}.k AS k, {n}.x AS x, {n}.y AS y FROM ({self.rows(depth)}) {n}"
            f"{self.where(n, max(depth, 1))}"
        )

    def distinct(self, depth: int) -> str:
        n = self.name()
        return (
            f"SELECT DISTINCT {n}.k AS k, {n}.x AS x, COUNT(*) OVER (PARTITION BY {n}.k) AS y"
            f" FROM ({self.rows(depth)}) {n}"
        )

    def public(self, depth: int) -> str:
        n = self.name()
        counted = "(SELECT region, COUNT(*) AS n FROM city GROUP BY region)"
        return (
            f"SELECT {n}.k AS k, {n}.x AS x, c{n}.n AS y FROM ({self.rows(depth)}) {n}"
            f" LEFT JOIN {counted} c{n} ON c{n}.n = {n}.y"
        )

    def path(self, depth: int) -> str:
        n, big = self.name(), self.name()
        lines = f"SELECT okey, SUM(qty) AS q FROM item GROUP BY okey HAVING COUNT(*) > {depth}"
        return self.draw.choice(
            [
                f"SELECT {n}.cust AS k, {n}.okey AS x, {big}.q AS y FROM orders {n}"
                f" LEFT JOIN ({lines}) {big} ON {n}.okey = {big}.okey",
                f"SELECT {n}.cust AS k, {n}.okey AS x, {n}.price AS y FROM orders {n} WHERE"
                f" {n}.okey NOT IN (SELECT {big}.okey FROM ({lines}) {big})",
                f"SELECT {n}.cust AS k, {n}.okey AS x, {n}.price AS y FROM orders {n} WHERE"
                f" (SELECT SUM({big}.qty) FROM item {big} WHERE {big}.okey = {n}.okey) > 1",
                f"SELECT {n}.cust AS k, {n}.okey AS x, {big}.qty AS y FROM orders {n}"
                f" LEFT JOIN item {big} ON {n}.okey = {big}.okey",
            ]
        )

    def by_key(self, depth: int) -> str:
        """What looks at the lines of an order; if its number is not unique, two people have it."""
        n, big = self.name(), self.name()
        lines = (
            "SELECT okey, SUM(qty) OVER (PARTITION BY okey ORDER BY sku) AS r,"
            " COUNT(*) OVER (PARTITION BY okey) AS n FROM item"
        )
        return self.draw.choice(
            [
                f"SELECT {n}.cust AS k, {big}.r AS x, {big}.n AS y FROM orders {n}"
                f" LEFT JOIN ({lines}) {big} ON {n}.okey = {big}.okey",
                f"SELECT {n}.cust AS k, COUNT(*) OVER (PARTITION BY {n}.okey) AS x, {n}.price AS y"
                f" FROM orders {n}",
                f"SELECT {n}.cust AS k, RANK() OVER (PARTITION BY {n}.okey ORDER BY {n}.price) AS"
                f" x, SUM({n}.price) OVER (PARTITION BY {n}.okey) AS y FROM orders {n}",
                f"SELECT {n}.cust AS k, {big}.sku AS x, {n}.price AS y FROM orders {n}"
                f" LEFT JOIN item {big} ON {n}.okey = {big}.okey",
                f"SELECT {n}.cust AS k, {n}.okey AS x, (SELECT COUNT(*) FROM item {big} WHERE"
                f" {big}.okey = {n}.okey) AS y FROM orders {n}",
            ]
        )

    def selected(self, depth: int) -> str:
        """A sub-select stands for a value among what is selected."""
        n, m = self.name(), self.name()
        return (
            f"SELECT {n}.k AS k, {n}.x AS x, (SELECT {self.aggregate(m, alone=True)} FROM"
            f" ({self.base()}) {m} WHERE {m}.k = {n}.k) AS y FROM ({self.rows(depth)}) {n}"
        )

    def where(self, n: str, depth: int) -> str:
        if not depth:
            return self.draw.choice(["", f" WHERE {n}.x > 1", f" WHERE NOT ({n}.y > 2)"])
        m = self.name()
        inner = f"({self.rows(depth - 1)}) {m}"
        sign = self.draw.choice(["<", ">=", "="])
        alone = self.aggregate(m, alone=True)
        conditions = [
            f"NOT EXISTS (SELECT 1 FROM {inner} WHERE {m}.k = {n}.k AND {m}.x {sign} {n}.x)",
            f"{n}.k NOT IN (SELECT {m}.k FROM {inner} WHERE {m}.x > 1)",
            f"{n}.x NOT IN (SELECT {m}.y FROM {inner} WHERE {m}.k = {n}.k)",
            f"{n}.x {sign} (SELECT {alone} FROM {inner} WHERE {m}.k = {n}.k)",
            f"({n}.x > 1 OR EXISTS (SELECT 1 FROM {inner} WHERE {n}.k = {m}.k AND {m}.y > 1))",
            f"{n}.k IN (SELECT {m}.k FROM {inner} GROUP BY {m}.k HAVING COUNT(*) > 1)",
            f"NOT EXISTS (SELECT 1 FROM city c{m} WHERE c{m}.name = 'ber' AND {n}.x > 2)",
            f"{n}.x NOT IN (SELECT c{m}.n FROM (SELECT COUNT(*) AS n FROM city) c{m})",
        ]
        if self.engine == "spark":
            # Spark does not know a sub-select that compares by order inside an OR, and the like.
            conditions = [c for c in conditions if " OR " not in c]
        return f" WHERE {self.draw.choice(conditions)}"
