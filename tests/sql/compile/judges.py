"""Two judges of a statement, on made-up databases that everybody may leave.

The engine's own answer to the statement as it is written is ours without noise, on the whole and
after somebody's rows are deleted; and what the relation says falls when somebody leaves is what
falls when their rows are deleted.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import duckdb
import numpy as np
from tests.sql import sql_worlds
from tests.sql.grammar import READING, VIEWS, Asked
from tests.sql.sql_worlds import OWNERS, PUBLIC, Rows, Who, random_world, summary, without

from tulle.noise.partition_selection import weight_levels
from tulle.sql.compile.gather import gather
from tulle.sql.compile.value_rows import COPIES, GROUP, LOAD, VALUE
from tulle.sql.data import Database
from tulle.sql.engines.duckdb.engine import read_rows
from tulle.sql.found_keys import FoundKeys, table_of
from tulle.sql.keys.question import COUNTED, DiscoveredTable
from tulle.sql.keys.question import PUBLIC as OF_PUBLIC
from tulle.sql.keys.statements import DIGEST, KEY, PEOPLE
from tulle.sql.queries import SqlQuery, gather_tuples, sql
from tulle.sql.tables.quantiles import SqlQuantile

RANGES = {
    "person.age": (0, 120),
    "edge.w": (-5, 5),
    "orders.price": (-10, 50),
    "item.qty": (0, 10),
    "item.sku": (0, 10),
    "visit.minutes": (0, 60),
    "reading.v": (-5, 5),
}
"""Wide enough that nothing is cut, so that the engine sees the same values."""

SALT = "0" * 32

STOPS = (
    *(duckdb.ConversionException, duckdb.OutOfRangeException, duckdb.InvalidInputException),
    duckdb.BinderException,
)
"""The engine itself stops at a value of a row, where ours has NULL, or has no such function for
these types, where ours converts. Then leaving is the only judge."""

DOMAINS = re.compile(
    r"\b(LN|LOG\d*|SQRT|POWER|EXP|FLOOR|CEIL|ROUND|TRUNC|SIGN)\(|[/%] (?!2|NULLIF)"
)
"""Beyond the domain of these ours is NULL, and the engine's infinite or not a number."""


# --- made-up databases ----------------------------------------------------------------------------


def unique_keys(rows: Rows) -> Rows:
    """Return the rows with one order of each number, so that a line has one order at most."""
    seen: dict[Any, Any] = {}
    for row in rows["orders"]:
        seen.setdefault(row[0], row)
    return rows | {"orders": list(seen.values())}


def busy_world(seed: int) -> Rows:
    """Return made-up rows in which people have several orders."""
    one, two, three = (random_world(10 * seed + i, people=3) for i in range(3))
    orders = [
        (10 * place + row[0], *row[1:])
        for place, world in enumerate((one, two, three))
        for row in world["orders"]
    ]
    items = [
        (10 * place + row[0], *row[1:])
        for place, world in enumerate((one, two, three))
        for row in world["item"]
    ]
    return one | {"orders": orders, "item": items}


def readings(seed: int, *, plain: bool) -> list[tuple[Any, ...]]:
    """Return numbers and names that are equal and yet differ; if they are ``plain``, none that do.

    Zero and what is not a number have signs, and names are taken for equal in any case.
    """
    # Where a range is declared, what is not a number is cut to its end.
    third = -0.75 if seed % 2 == 0 else math.nan
    numbers = [0.0, 1.5, third, None] if plain else [0.0, -0.0, math.nan, -math.nan, 1.5, None]
    names = ["ann", "bob", None] if plain else ["ann", "Ann", "aNN", None]
    draw = np.random.default_rng(seed)
    people = [1, 2, 3, 3, None, 1, 2, 3, 1, 2]
    return [
        (who, numbers[draw.integers(len(numbers))], names[draw.integers(len(names))])
        for who in people
    ]


def _literal(value: Any) -> str:
    if isinstance(value, float):
        sign = "-" if math.copysign(1.0, value) < 0 else ""
        return f"{sign}CAST('{abs(value)}' AS DOUBLE)"
    return "NULL" if value is None else repr(value)


def connected(rows: Rows, read: Sequence[tuple[Any, ...]], *, collate: bool) -> Any:
    """Return a DuckDB connection to rows, in one step: there are many such."""
    statements = [f"CREATE TABLE {table} ({columns})" for table, columns in TABLES.items()]
    if collate:
        statements[-1] = statements[-1].replace("VARCHAR", "VARCHAR COLLATE NOCASE")
    for table, listed in (rows | {"reading": list(read)}).items():
        if listed:
            values = ", ".join(f"({', '.join(map(_literal, row))})" for row in listed)
            statements.append(f"INSERT INTO {table} VALUES {values}")
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("; ".join([*statements, *VIEWS]))
    return connection


TABLES = {**sql_worlds.COLUMNS, "reading": READING}


@dataclass
class World:
    """A database, a plain connection to the rows that take part, and both for each neighbour."""

    rows: Rows
    read: list[tuple[Any, ...]]
    unique: bool
    database: Database
    plain: Any
    people: list[Who]
    neighbours: dict[Who, tuple[Any, Any]] = field(default_factory=dict)

    @classmethod
    def make(cls, seed: int, unique: bool) -> World:
        rows = busy_world(seed)
        rows = unique_keys(rows) if unique else rows
        read = readings(seed, plain=unique)
        connection = connected(rows, read, collate=not unique)
        # Where nothing is declared, sums have two signs; quantiles need ranges.
        ranges = RANGES if seed % 2 == 0 else None
        owners = OWNERS | {"reading": "person: who"}
        database = Database.connect(connection, owners=owners, public=PUBLIC, ranges=ranges)
        found = sql_worlds.everyone(rows) | {("person", who) for who, *_ in read if who}
        # The catalogue is read anew for every question; here nobody changes it.
        engine: Any = database._engine
        known = engine.tables()
        engine.tables = lambda only=None: known
        made = cls(rows, read, unique, database, None, sorted(found))
        made.plain = made._plain(rows, read)
        return made

    def _plain(self, rows: Rows, read: Sequence[tuple[Any, ...]]) -> Any:
        there = [row for row in read if row[0] is not None]
        connection = connected(sql_worlds.taking_part(rows), there, collate=not self.unique)
        # As written, without rewriting: DuckDB 2.0 pushes what a join looks for into DISTINCT ON.
        connection.execute("PRAGMA disable_optimizer")
        return connection

    def without(self, who: Who) -> tuple[Any, Any]:
        """Return connections to the rows that are left, and to those of them that take part."""
        if who not in self.neighbours:
            rows = sql_worlds.take_away(self.rows, who)
            read = [row for row in self.read if ("person", row[0]) != who]
            left = connected(rows, read, collate=not self.unique)
            self.neighbours[who] = left, self._plain(rows, read)
        return self.neighbours[who]


@lru_cache(maxsize=8)
def world(seed: int, unique: bool) -> World:
    """Return a made-up database; in half of them, keys that lead to owners are unique."""
    return World.make(seed, unique)


def fetch(connection: Any, statement: str) -> Any:
    """Return an engine's rows, as :class:`tulle.sql.engines.base.Engine` has them."""
    return read_rows(connection.cursor, statement)


# --- judges ---------------------------------------------------------------------------------------


def wrong(asked: Asked, seed: int, *, unique: bool, people: slice = slice(None)) -> Iterator[str]:
    """Yield what is wrong with a statement's relations, or its table.

    Raises:
        QueryError: when the statement is refused.
    """
    here = world(seed, unique)
    question: Any = sql(asked.text, groups=asked.groups).bind(here.database)
    leaving = here.people[people]
    if isinstance(question, SqlQuery) and not question.groups:
        yield from differences(question, here, leaving)
        return
    parts = list(question.parts()) if not isinstance(question, SqlQuery) else [question]
    if isinstance(question, DiscoveredTable):
        parts = [*_found_keys(question, here, leaving)]
        yield from (part for part in parts if isinstance(part, str))
    for part in parts:
        if isinstance(part, SqlQuery):
            yield from differences(part, here, leaving, judged=False)
        elif isinstance(part, SqlQuantile):
            yield from _quantile(part, here, leaving)
    if unique and not DOMAINS.search(asked.text):
        yield from _table(question, asked, here)


def differences(
    question: SqlQuery, here: World, leaving: Iterable[Who], *, judged: bool = True
) -> Iterator[str]:
    """Yield what is wrong with a question's relations.

    Where keys are unique the engine's own answer to the statement as it is written is the judge,
    on the whole and on rows from which somebody's were deleted. Where they are not, rows of two
    people do not meet inside one person's rows, and only leaving is judged.
    """
    question = question.bind(here.database)
    gathered = gather_tuples(here.database, question)
    judged = judged and here.unique and not DOMAINS.search(question.text)
    if judged:
        yield from _engine_says(here.plain, question.text, gathered.relations[0].total)
    rewritten = question.rewrite(here.database.schema)
    for who in leaving:
        left, left_plain = here.without(who)
        fresh = gather(rewritten, fetch(left, rewritten.text))
        found = [summary(relation, fresh.names) for relation in fresh.relations]
        if found != without(gathered, who):
            yield f"{who} leaves: {found} instead of {without(gathered, who)}"
        if judged:
            yield from _engine_says(left_plain, question.text, fresh.relations[0].total)


def _engine_says(plain: Any, text: str, mine: float) -> Iterator[str]:
    try:
        answer = float(plain.execute(text).fetchone()[0] or 0)
    except STOPS:
        return
    # What is not a number weighs nothing here, and makes the engine's sum none.
    if math.isfinite(answer) and not np.isclose(mine, answer, rtol=1e-6):
        yield f"total {mine}, but the engine says {answer}"


def _quantile(question: SqlQuantile, here: World, leaving: Iterable[Who]) -> Iterator[str]:
    """Yield whether somebody's leaving does more than take rows of one load away, that many."""
    text = question.rewrite(here.database.schema).text
    whole = _values(here.database._engine.fetch(text))
    for who in leaving:
        left = _values(fetch(here.without(who)[0], text))
        fallen, risen = whole - left, left - whole
        loads = {load for _, _, load in fallen}
        if risen or len(loads) > 1 or (fallen and fallen.total() > max(loads)):
            yield f"{who} leaves, and takes away {fallen}, and adds {risen}"


def _values(table: Any) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for row in table.to_pylist():
        value = row[VALUE]
        key = row.get(GROUP, 0), "NaN" if value != value else value, row[LOAD]
        found[key] += int(row[COPIES])
    return found


def _found_keys(question: DiscoveredTable, here: World, leaving: Iterable[Who]) -> Iterator[Any]:
    """Yield what is wrong with how many people have each key, and what is asked of all keys."""
    found = question.bound
    assert found is not None
    most = found.keys_per_person
    if found.where != OF_PUBLIC:
        levels = () if found.numbers else weight_levels(most)
        one = levels[0][1] if levels else 1
        text = found.rows.counted(SALT, most, levels)
        whole = _people(here.database._engine.fetch(text))
        for who in leaving:
            left = _people(fetch(here.without(who)[0], text))
            fallen = whole - left
            # Of counts at most so many move by one; of weights the length is at most one.
            length = one**2 if levels else most
            if (
                left - whole
                or len(fallen) > most
                or max(fallen.values(), default=0) > one
                or sum(moved**2 for moved in fallen.values()) > length
            ):
                yield f"{who} leaves {left} of {whole}, and has {most} keys at most"
    listed = here.database._engine.fetch(found.rows.listed(SALT)).sort_by(DIGEST)
    texts = [listed.column(f"{KEY}_{place}").to_pylist() for place in range(len(found.rows.kinds))]
    digests = listed.column(DIGEST).to_pylist()
    keys, _ = FoundKeys.of(question.names, found.rows.kinds, SALT, digests, texts, None)
    if keys.size:
        yield from table_of(question, found, keys).parts()


def _people(table: Any) -> Counter[str]:
    return Counter({row[DIGEST]: row[PEOPLE] for row in table.to_pylist()})


def _table(question: Any, asked: Asked, here: World) -> Iterator[str]:
    """Yield where a table differs from the engine's own."""
    try:
        theirs = here.plain.execute(asked.text).fetchall()
    except STOPS:
        return
    mine = question.truth(here.database)
    width = asked.keys
    if isinstance(question, SqlQuery):
        listed = {key: [value] for key, value in zip(_public(asked), mine.tolist(), strict=True)}
    else:
        names = [name for name in mine.names if not name.endswith(("_low", "_high"))]
        rows = zip(*(mine[name] for name in names), strict=True)
        listed = {_key(row[:width]): list(row[width:]) for row in rows}
    engine = {_key(row[:width]): list(row[width:]) for row in theirs}
    # Keys that are found in one table of a join, or in a public one, may have no row in it.
    exact = isinstance(question, DiscoveredTable) and question.bound.where == COUNTED
    if asked.groups is None and (
        set(engine) - set(listed) or (exact and len(engine) < len(listed))
    ):
        yield f"keys {sorted(map(str, listed))}, but the engine has {sorted(map(str, engine))}"
    for key, values in listed.items():
        for place, value in enumerate(engine.get(key, values)):
            if not _alike(values[place], value):
                yield f"{key}: column {place} is {values[place]}, but the engine says {value}"


def _public(asked: Asked) -> list[Any]:
    from itertools import product

    return [_key(row) for row in product(*(asked.groups or {}).values())]


def _key(row: Iterable[Any]) -> tuple[Any, ...]:
    """Return a key in a form that is equal for equal keys: 1 and Decimal(1), NaN and NaN."""
    made = []
    for value in row:
        number = not isinstance(value, str | bool) and value is not None
        made.append(str(float(value) + 0.0) if number else value)
    return tuple(made)


def _alike(mine: Any, theirs: Any) -> bool:
    if theirs is None:
        # SQL has no sum of nothing; here, as in all answers, it is zero.
        return mine is None or mine == 0
    if not math.isfinite(theirs):
        # What is not a number weighs nothing.
        return True
    # DuckDB cuts what it interpolates between decimals off to their digits.
    near = 0.0101 if type(theirs).__name__ == "Decimal" else 1e-6
    return mine is not None and math.isclose(float(mine), float(theirs), rel_tol=1e-6, abs_tol=near)
