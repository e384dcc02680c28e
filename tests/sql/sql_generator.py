"""Random questions, nested as deep as asked for, over the tables of ``sql_worlds``."""

from __future__ import annotations

import random
from collections.abc import Mapping

NUMBERS = {
    "person": ["id", "age"],
    "edge": ["a", "b", "w"],
    "orders": ["okey", "cust"],
    "item": ["okey", "sku", "qty"],
    "visit": ["pid", "sid", "minutes"],
}
"""Columns that hold whole numbers; all conditions and sums are made of these."""


class Generator:
    """Writes SQL of every construct that is supported; the same seed writes the same question."""

    def __init__(self, seed: int, tables: Mapping[str, list[str]] = NUMBERS) -> None:
        self.draw = random.Random(seed)
        self.tables = tables
        self.last = 0

    def name(self) -> str:
        self.last += 1
        return f"s{self.last}"

    def question(self) -> str:
        sources, columns = self.sources(self.draw.choice([1, 1, 2, 2, 3]), depth=2)
        value = self.value(columns)
        aggregate = self.draw.choice(
            [
                "COUNT(*)",
                *(f"COUNT({value})", f"COUNT(DISTINCT {value})"),
                *(f"SUM({value})", f"SUM(DISTINCT {value})"),
            ]
        )
        return f"SELECT {aggregate} FROM {sources}{self.where(columns, depth=2)}"

    def sources(self, count: int, depth: int) -> tuple[str, list[str]]:
        listed, columns = [], []
        for _ in range(count):
            name = self.name()
            if depth and self.draw.random() < 0.55:
                text, mine = self.rows(depth - 1)
                listed.append(f"({text}) {name}")
            else:
                table = self.draw.choice(list(self.tables))
                mine = self.tables[table]
                listed.append(f"{table} {name}")
            columns += [f"{name}.{column}" for column in mine]
        return ", ".join(listed), columns

    def rows(self, depth: int) -> tuple[str, list[str]]:
        width = self.draw.choice([1, 1, 2])
        names = [f"c{i}" for i in range(width)]
        sides = [self.side(names, depth)]
        while self.draw.random() < 0.35 and len(sides) < 3:
            word = self.draw.choice(["UNION", "UNION", "UNION ALL", "UNION ALL", "INTERSECT"])
            sides.append(f"{word} {self.side(names, depth)}")
        if len(sides) == 3:
            # The order of mixed set operations differs between dialects: brackets say which.
            sides = [f"SELECT * FROM ({sides[0]} {sides[1]}) u{self.last}", sides[2]]
        return " ".join(sides), names

    def side(self, names: list[str], depth: int) -> str:
        sources, columns = self.sources(self.draw.choice([1, 1, 2]), depth)
        distinct = self.draw.choice(["", "DISTINCT "])
        chosen = ", ".join(f"{self.value(columns)} AS {name}" for name in names)
        return f"SELECT {distinct}{chosen} FROM {sources}{self.where(columns, depth)}"

    def where(self, columns: list[str], depth: int) -> str:
        conditions = [self.condition(columns) for _ in range(self.draw.choice([0, 1, 1, 2]))]
        if depth and self.draw.random() < 0.3:
            conditions.append(self.semi_join(columns))
        return " WHERE " + " AND ".join(conditions) if conditions else ""

    def semi_join(self, columns: list[str]) -> str:
        """Return a condition that there is a row, of whomever."""
        text, _ = self.sources(1, 0)
        inner = text.split()[-1]
        column = f"{inner}.{self.draw.choice(self.tables[text.split()[0]])}"
        outer = self.draw.choice(columns)
        if self.draw.random() < 0.5:
            return f"{outer} IN (SELECT {column} FROM {text})"
        condition = self.condition([column, outer])
        return f"EXISTS (SELECT 1 FROM {text} WHERE {column} = {outer} AND {condition})"

    def condition(self, columns: list[str]) -> str:
        one, other = self.draw.choice(columns), self.draw.choice(columns)
        sign = self.draw.choice(["=", "=", "<", "<>", ">="])
        plain = f"{one} {sign} {other}"
        return self.draw.choice(
            [plain, plain, f"NOT ({plain})", f"({plain} OR {one} IS NULL)", f"{one} IN (1, 2, 3)"]
        )

    def value(self, columns: list[str]) -> str:
        one, other = self.draw.choice(columns), self.draw.choice(columns)
        return self.draw.choice([one, one, f"{one} - {other}", f"COALESCE({one}, {other})", "1"])
