"""Random schemas of PostgreSQL: its own types, keys of differing types, parts of tables, views.

A schema has two to four tables in one namespace of a database; tables are owned by columns, over
keys that lead to earlier tables, or public. Names, types, collations, partitions, children, domains
and views are drawn. A participant leaves by DELETE, where a table names its owner.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from tests.sql.linked_generator import Linked

from tulle.sql.expressions import kinds
from tulle.sql.expressions.kinds import kind_of_column
from tulle.sql.expressions.total import ENTRIES

SETUP = (
    'CREATE COLLATION mine FROM "C"',
    "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')",
    "CREATE TYPE pair AS (a integer, b text)",
    "CREATE DOMAIN numbered AS integer CHECK (VALUE < 100)",
    "CREATE DOMAIN numbered_again AS numbered",
    "CREATE DOMAIN tag AS varchar(8) COLLATE mine",
    "CREATE DOMAIN price AS numeric(8,2)",
)
"""What is made once in a database, in the schema public."""

KEYS = {
    "numbers": (
        ("smallint", "integer", "bigint", "numeric(6,0)", "public.numbered_again"),
        ("1", "2", "3", "4"),
    ),
    "texts": (
        (
            *("text", "varchar(8)", "char(4)", 'text COLLATE "C"', 'varchar COLLATE "POSIX"'),
            *("public.tag", "text COLLATE public.mine"),
        ),
        ("'a'", "'A'", "'b'", "'\u00e9 1'"),
    ),
    "days": (("date",), ("'2020-01-01'", "'infinity'", "'0044-03-15 BC'", "'2020-02-29'")),
    "uuids": (
        ("uuid",),
        tuple(f"'00000000-0000-0000-0000-00000000000{end}'" for end in "123f"),
    ),
}
"""Types of columns that identify people, which may be joined; and values of each."""

_WHOLE = ("0", "1", "2", "3", "-1")
_WORDS = ("''", "' '", "'a'", "'A'", "'a '", "'12'", "'-1.5e3'", "'\u0663'", "'2020-02-29'")
_DAYS = ("'2020-01-01'", "'2020-02-29'", "'infinity'", "'-infinity'", "'4713-01-01 BC'")
VALUES = {
    "smallint": (*_WHOLE, "32767", "-32768"),
    "integer": (*_WHOLE, "2147483647", "-2147483648"),
    "bigint": (*_WHOLE, "9223372036854775807", "-9223372036854775808"),
    "numeric": (*_WHOLE, "1.0", "1.00", "'NaN'", "'Infinity'", "'-Infinity'", "1e400", "1e-400"),
    "numeric(4,2)": (*_WHOLE, "1.25", "-99.99", "'NaN'"),
    "numeric(2,5)": ("0", "0.00012", "-0.00099"),
    "public.price": (*_WHOLE, "2.25", "999999.99"),
    "real": (*_WHOLE, "'-0'", "'NaN'", "'Infinity'", "3.4e38", "1e-45", "0.1"),
    "double precision": (*_WHOLE, "'-0'", "'NaN'", "'-Infinity'", "1e308", "5e-324", "0.1"),
    "text": (*_WORDS, "repeat('x', 3000)"),
    "varchar(12)": _WORDS,
    "char(3)": ("''", "'a'", "'A'", "'ab'", "'a b'"),
    "char(5)": ("''", "'a'", "'A'", "'ab'", "'a b'"),
    'text COLLATE "C"': _WORDS,
    'varchar(12) COLLATE "POSIX"': _WORDS,
    "public.tag": ("''", "'a'", "'A'"),
    "boolean": ("true", "false"),
    "date": _DAYS,
    "timestamp": (*_DAYS, "'2020-01-01 23:59:59.999999'"),
    "timestamp(0)": (*_DAYS, "'2020-01-01 23:59:59.9'"),
    "timestamptz": (*_DAYS, "'2020-03-29 02:30:00+01'"),
    "time": ("'00:00'", "'24:00'", "'10:20:30.5'"),
    "interval": ("'1 month'", "'30 days'", "'178000000 years'"),
    "uuid": KEYS["uuids"][1],
    "public.mood": ("'sad'", "'ok'"),
    "public.pair": ("ROW(1, 'a')", "ROW(NULL, NULL)"),
    "integer[]": ("'{1,2}'", "'{}'", "'{NULL}'"),
    'text[] COLLATE "C"': ("'{a}'", "'{}'"),
    "jsonb": ("'{}'", "'1.0'", "'1.00'"),
    "inet": ("'10.0.0.1'", "'::/0'"),
    "money": ("1", "'-92233720368547758.08'"),
    "int4range": ("'empty'", "'[1,5)'"),
    "bytea": (r"'\x00ff'", "''"),
    "bit(3)": ("B'101'",),
    "name": ("'a'", "'A'"),
    "timetz": ("'10:00+01'", "'24:00:00-15:59'"),
}
"""Types of other columns, with ordinary values, extreme ones, and equal ones that differ."""

NAMES = (
    *("a", "b", "value", "Mixed Case", "order", "select", "user", 'say "it"', "it's", "\u732b"),
    *("x" * 63, "\u00e9" * 31, "left", "_1", "t", "public", "a.b", "count", "date", "NULL"),
)
"""Names of columns and tables: of reserved words, with quotes, as long as there are."""


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@dataclass
class Table:
    """A table with its columns (name, type, values), and the columns that say whose rows are."""

    name: str
    columns: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)
    owners: list[str] = field(default_factory=list)
    """Columns that identify people: a row belongs to all of them."""
    way: tuple[str, Table] | None = None
    """A column that leads to the owners of an earlier table, by its first column."""

    @property
    def declared(self) -> Any:
        if self.way is not None:
            column, other = self.way
            return f"{quoted(column)} -> {quoted(other.name)}[{quoted(other.columns[0][0])}]"
        return [quoted(name) for name in self.owners]


class World:
    """One schema and its rows; the same seed makes the same."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.space = f"s{seed}"
        self.kind = self.draw.choice([*KEYS, "numbers", "texts"])
        self.names = self.draw.sample(NAMES, len(NAMES))
        self.tables: list[Table] = []
        self.statements = [f"CREATE SCHEMA {self.space}", f"SET search_path = {self.space}"]
        self.views: list[tuple[str, Table]] = []
        for _ in range(self.draw.randint(2, 4)):
            self._add_table()
        self.rows = {table.name: self._rows(table) for table in self.tables}

    def _key(self) -> tuple[str, tuple[str, ...]]:
        types, values = KEYS[self.kind]
        return self.draw.choice(types), values

    def _add_table(self) -> None:
        """Draw a table, and how it lies in the database."""
        table, draw = Table(self.names.pop()), self.draw
        listed = draw.sample(NAMES, draw.randint(4, 7))
        # The first two columns hold keys: the row's own and, mostly, whose it is.
        for place, name in enumerate(listed):
            kind = draw.choice([*VALUES])
            found = self._key() if place < 2 else (kind, VALUES[kind])
            table.columns.append((name, *found))
        role = draw.random() if self.tables else 0.0
        if role < 0.45:
            table.owners = [listed[1]]
        elif role < 0.6:
            table.owners = [listed[0], listed[1]]
        elif role < 0.85:
            table.way = (listed[1], draw.choice(self.tables))
            if not table.way[1].owners and table.way[1].way is None:
                table.way = None
        self.tables.append(table)
        columns = ", ".join(f"{quoted(name)} {kind}" for name, kind, _ in table.columns)
        made = f"CREATE TABLE {quoted(table.name)} ({columns})"
        lies = draw.random()
        if lies < 0.15:
            parts = (
                f"CREATE TABLE part_{len(self.tables)} PARTITION OF {quoted(table.name)} DEFAULT"
            )
            self.statements += [f"{made} PARTITION BY LIST ({quoted(listed[0])})", parts]
        elif lies < 0.3:
            made_of = f"CREATE TABLE child_{len(self.tables)} () INHERITS ({quoted(table.name)})"
            self.statements += [made, made_of]
        else:
            self.statements.append(made)
        if draw.random() < 0.3:
            name = self.names.pop()
            chosen = ", ".join(quoted(one) for one in listed[: draw.randint(3, len(listed))])
            condition = f"{quoted(listed[2])} IS NOT NULL"
            self.statements.append(
                f"CREATE VIEW {quoted(name)} AS SELECT {chosen} FROM {quoted(table.name)}"
                + (f" WHERE {condition}" if draw.random() < 0.5 else "")
            )
            self.views.append((name, table))

    def _rows(self, table: Table) -> list[str]:
        return [
            "("
            + ", ".join(
                "NULL" if self.draw.random() < 0.12 else self.draw.choice(values)
                for _, _, values in table.columns
            )
            + ")"
            for _ in range(self.draw.randint(3, 7))
        ]

    def load(self) -> list[str]:
        """Return the statements that put the rows in place, replacing what is there."""
        made = []
        for place, table in enumerate(self.tables):
            name = f"{self.space}.{quoted(table.name)}"
            rows, inherits = self.rows[table.name], f"child_{place + 1} () INHERITS"
            made.append(f"TRUNCATE {name}")
            split = len(rows) // 2 if any(inherits in one for one in self.statements) else 0
            for target, some in (
                (f"{self.space}.child_{place + 1}", rows[:split]),
                (name, rows[split:]),
            ):
                if some:
                    made.append(f"INSERT INTO {target} VALUES {', '.join(some)}")
        return made

    def leave(self, person: Any) -> list[str]:
        """Return the statements that take a participant away."""
        text = str(person).replace("'", "''")
        return [
            f"DELETE FROM {self.space}.{quoted(table.name)} "
            f"WHERE CAST({quoted(owner)} AS TEXT) COLLATE \"C\" = '{text}'"
            for table in self.tables
            for owner in table.owners
        ]

    def declared(self) -> dict[str, Any]:
        """Return what is said when connecting."""
        owned = [table for table in self.tables if table.owners or table.way is not None]
        return {
            "owners": {table.name: table.declared for table in owned},
            "public": [table.name for table in self.tables if table not in owned],
        }

    def questions(self, count: int) -> list[str]:
        """Return questions over random links of tables and views."""
        sources = tuple(self._source() for _ in range(8))
        linked = Linked(self.draw.randrange(2**31), sources)
        return [linked.question(self.draw.choice((-1, 0, 0, 1))) for _ in range(count)]

    def _source(self) -> str:
        """Return rows of one table with the columns k, x and y, most under a condition."""
        draw = self.draw
        name, table = draw.choice([(one.name, one) for one in self.tables] + self.views)
        seen = list(table.columns) if name == table.name else table.columns[:3]
        k = draw.choice(seen[:2])[0]
        x, y = (self._number(*draw.choice(seen)[:2]) for _ in "xy")
        made = f"SELECT {quoted(k)} AS k, {x} AS x, {y} AS y FROM {quoted(name)}"
        conditions = [self._condition(seen) for _ in range(draw.choice((0, 1, 1, 2)))]
        if draw.random() < 0.7:
            # Many are worked out on every row, whatever the others say.
            each = [f"CASE WHEN {self._condition(seen)} THEN 1 ELSE 0 END" for _ in range(8)]
            conditions.insert(0, f"{' + '.join(each)} > {draw.randint(0, 3)}")
        return made + (" WHERE " + " AND ".join(conditions) if conditions else "")

    def _number(self, name: str, written: str) -> str:
        kind, column = kind_of_column(written, "postgres").name, quoted(name)
        if kind in kinds.NUMBERS:
            return column
        if kind in {kinds.DATE, kinds.TIMESTAMP}:
            return f"EXTRACT(MONTH FROM {column})"
        found = self.draw.choice(("LENGTH(CAST({} AS TEXT))", "CAST(CAST({} AS TEXT) AS DOUBLE)"))
        return found.format(column)

    def _condition(self, columns: list[tuple[str, str, tuple[str, ...]]]) -> str:
        """Return a condition over columns of a table; an expression of the list of those known."""
        draw = self.draw
        two = [draw.choice(columns)[:2] for _ in range(2)]
        known = [kind_of_column(written, "postgres").name for _, written in two]
        given = [
            f"CAST({quoted(name)} AS TEXT)" if kind == kinds.OPAQUE else quoted(name)
            for (name, _), kind in zip(two, known, strict=True)
        ]
        known = [kinds.TEXT if kind == kinds.OPAQUE else kind for kind in known]
        fits = [
            entry
            for entry in ENTRIES
            if all(kind in taken for kind, taken in zip(known, entry.takes, strict=False))
        ]
        if fits and draw.random() < 0.7:
            written = draw.choice(fits).written.format(*given)
            return f"({written}) IS {draw.choice(('', 'NOT '))}NULL"
        compared = ("{0} = {1}", "{0} < {1}", "COALESCE({0}, {1}) >= {1}", "{0} <> {1}")
        alike = known[0] == known[1] or set(known) <= kinds.NUMBERS
        right = given[1] if alike else given[0]
        return draw.choice(compared).format(given[0], right)
