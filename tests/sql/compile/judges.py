"""Two judges of a statement, on made-up databases that everybody may leave.

The engine's own answer to the statement as it is written is ours without noise, on the whole and
after somebody's rows are deleted; and what the relation says falls when somebody leaves is what
falls when their rows are deleted.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import Any

import duckdb
import numpy as np
from tests.sql import sql_worlds
from tests.sql.grammar import READING, VIEWS, Asked
from tests.sql.sql_worlds import OWNERS, PUBLIC, Rows, Who, random_world, summary, without

from tulle.core.errors import QueryError
from tulle.noise.partition_selection import weight_levels
from tulle.sql.compile.gather import gather
from tulle.sql.compile.value_rows import COPIES, GROUP, LOAD, VALUE
from tulle.sql.data import Database
from tulle.sql.keys.question import COUNTED, DiscoveredTable
from tulle.sql.keys.question import PUBLIC as OF_PUBLIC
from tulle.sql.keys.statements import DIGEST, KEY, PEOPLE
from tulle.sql.mechanisms.found_keys import FoundKeys, table_of
from tulle.sql.queries import SqlQuery, gather_tuples, sql
from tulle.sql.tables.columns import Column
from tulle.sql.tables.quantiles import SqlQuantile
from tulle.sql.tables.question import SqlTable

RANGES = {
    "person.age": (0, 120),
    "edge.w": (-5, 5),
    "orders.price": (-10, 50),
    "item.qty": (0, 10),
    "item.sku": (0, 10),
    "visit.minutes": (0, 60),
    "reading.v": (-5, 5),
    "reading.seen": ("1990-01-01", "2030-12-31"),
    "reading.heard": ("1960-01-01", "2030-12-31 23:59:59"),
}
"""Wide enough that nothing is cut, so that the engine sees the same values."""

SALT = "0" * 32
REFUSED = "it is refused"

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
    """Return the rows with one order of each number, so that a line has one, and one of a city."""
    seen: dict[Any, Any] = {}
    for row in rows["orders"]:
        seen.setdefault(row[0], row)
    return rows | {"orders": list(seen.values()), "city": list(dict.fromkeys(rows["city"]))}


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
    found = [
        (who, numbers[draw.integers(len(numbers))], names[draw.integers(len(names))])
        for who in people
    ]
    days = [date(2020, 2, 29), date(1999, 12, 31), date(2020, 3, 5), date(2013, 7, 1), None]
    moments = [datetime(2020, 2, 29, 23, 59, 59), datetime(1969, 12, 31, 12, 30, 1), None]
    return [
        (*row, days[draw.integers(len(days))], moments[draw.integers(len(moments))])
        for row in found
    ]


def _literal(value: Any) -> str:
    if isinstance(value, float):
        sign = "-" if math.copysign(1.0, value) < 0 else ""
        return f"{sign}CAST('{abs(value)}' AS DOUBLE)"
    if isinstance(value, date):
        return f"'{value}'"
    return "NULL" if value is None else repr(value)


def connected(rows: Rows, *, collate: bool) -> Any:
    """Return a DuckDB connection to rows."""
    statements = [f"CREATE TABLE {table} ({columns})" for table, columns in TABLES.items()]
    if collate:
        statements[-1] = statements[-1].replace("VARCHAR", "VARCHAR COLLATE NOCASE")
    for table, listed in rows.items():
        if listed:
            values = ", ".join(f"({', '.join(map(_literal, row))})" for row in listed)
            statements.append(f"INSERT INTO {table} VALUES {values}")
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("; ".join([*statements, *VIEWS]))
    return connection


TABLES = {**sql_worlds.COLUMNS, "reading": READING}


class Prepared:
    """A connection to made-up rows, of which somebody's may be away for a while.

    What is to run whoever is away is prepared once. It runs as it is written, without rewriting:
    that is quicker, and DuckDB 2.0 pushes what a join looks for into DISTINCT ON.
    """

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        connection.execute("PRAGMA disable_optimizer")
        self._names: list[str] = []
        self._gone = ""

    def prepare(self, text: str) -> str:
        """Return the name of a statement that is prepared."""
        self._names.append(f"prepared_{len(self._names)}")
        self.connection.execute(f"PREPARE {self._names[-1]} AS {text}")
        return self._names[-1]

    def forget(self) -> None:
        """Forget what was prepared."""
        for name in self._names:
            self.connection.execute(f"DEALLOCATE {name}")
        self._names.clear()

    def run(self, name: str) -> Any:
        """Return the rows of a prepared statement, as an Arrow table."""
        return self.connection.sql(f"EXECUTE {name}").to_arrow_table()

    def number(self, name: str) -> float | None:
        """Return the one number that a prepared statement gives, unless a value stops it."""
        try:
            return float(self.connection.execute(f"EXECUTE {name}").fetchone()[0] or 0)
        except STOPS:
            # What fails ends what was begun.
            self.connection.execute("ROLLBACK")
            self.connection.execute(self._gone)
            return None

    @contextmanager
    def without(self, before: Rows, after: Rows) -> Iterator[None]:
        """Delete rows for a while: those that were there before and are not there after."""
        self._gone = "; ".join(["BEGIN", *_deletions(before, after)])
        self.connection.execute(self._gone)
        try:
            yield
        finally:
            self.connection.execute("ROLLBACK")


def _deletions(before: Rows, after: Rows) -> Iterator[str]:
    for table, listed in before.items():
        kept = Counter(map(str, after[table]))
        gone = []
        for place, row in enumerate(map(str, listed)):
            if kept[row]:
                kept[row] -= 1
            else:
                gone.append(str(place))
        if gone:
            yield f"DELETE FROM {table} WHERE rowid IN ({', '.join(gone)})"


@dataclass
class World:
    """A made-up database, one of the rows that take part in it, and who may leave both."""

    rows: Rows
    unique: bool
    database: Database
    people: list[Who]
    whole: Prepared
    part: Prepared

    @classmethod
    def make(cls, seed: int, unique: bool) -> World:
        rows = busy_world(seed)
        rows = unique_keys(rows) if unique else rows
        rows = rows | {"reading": readings(seed, plain=unique)}
        connection = connected(rows, collate=not unique)
        # Where nothing is declared, sums have two signs; quantiles need ranges.
        ranges = RANGES if seed % 2 == 0 else None
        owners = OWNERS | {"reading": "person: who"}
        keys = {"person": "id", "city": "name"} if unique else None
        database = Database.connect(
            connection, owners=owners, public=PUBLIC, ranges=ranges, keys=keys
        )
        found = sql_worlds.everyone(rows) | {("person", who) for who, *_ in rows["reading"] if who}
        # The catalogue is read anew for every question; here nobody changes it.
        engine: Any = database._engine
        known = engine.tables()
        engine.tables = lambda only=None: known
        engine.check = lru_cache(maxsize=1000)(engine.check)
        part = Prepared(connected(taking_part(rows), collate=not unique))
        return cls(rows, unique, database, sorted(found), Prepared(connection.cursor()), part)

    @contextmanager
    def without(self, who: Who) -> Iterator[None]:
        """Delete somebody's rows for a while, among all rows and among those that take part."""
        left = take_away(self.rows, who)
        with (
            self.whole.without(self.rows, left),
            self.part.without(taking_part(self.rows), taking_part(left)),
        ):
            yield


def take_away(rows: Rows, who: Who) -> Rows:
    """Return the rows that are left when somebody goes."""
    read = [row for row in rows["reading"] if ("person", row[0]) != who]
    return sql_worlds.take_away(rows, who) | {"reading": read}


def taking_part(rows: Rows) -> Rows:
    """Return the rows that answers are about."""
    read = [row for row in rows["reading"] if row[0] is not None]
    return sql_worlds.taking_part(rows) | {"reading": read}


@lru_cache(maxsize=8)
def world(seed: int, unique: bool) -> World:
    """Return a made-up database; in half of them, keys that lead to owners are unique."""
    return World.make(seed, unique)


# --- judges ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Watched:
    """A statement that runs again when somebody has left."""

    text: str
    judge: Callable[[Who, Any, float | None], Iterator[str]]
    """What is wrong with the rows that it gives then; the engine's own number is beside them."""
    own: str = ""
    """The statement for that number, over the rows that take part."""


Judged = Iterator[str | Watched]


def wrong(
    asked: Sequence[Asked], seed: int, *, unique: bool, people: slice = slice(None)
) -> Iterator[tuple[Asked, str]]:
    """Yield what is wrong with statements; of one that is refused, that it is."""
    here = world(seed, unique)
    watched = []
    for one in asked:
        try:
            for found in _judged(one, here):
                if isinstance(found, str):
                    yield one, found
                else:
                    watched.append((one, found))
        except QueryError:
            yield one, REFUSED
    yield from leave(watched, here, here.people[people])


def leave(
    watched: Iterable[tuple[Any, Watched]], here: World, people: Iterable[Who]
) -> Iterator[tuple[Any, str]]:
    """Yield what is wrong when people leave one after the other, and with what."""
    try:
        prepared = [
            (
                *(whose, one.judge, here.whole.prepare(one.text)),
                here.part.prepare(one.own) if one.own else "",
            )
            for whose, one in watched
        ]
        for who in people:
            with here.without(who):
                for whose, judge, name, own in prepared:
                    theirs = here.part.number(own) if own else None
                    for found in judge(who, here.whole.run(name), theirs):
                        yield whose, f"{who} leaves: {found}"
    finally:
        here.whole.forget()
        here.part.forget()


def _judged(asked: Asked, here: World) -> Judged:
    question: Any = sql(asked.text, groups=asked.groups).bind(here.database)
    if isinstance(question, SqlQuery) and not question.groups:
        yield from judged(question, here)
        return
    parts = list(question.parts()) if not isinstance(question, SqlQuery) else [question]
    if isinstance(question, DiscoveredTable):
        found = list(_found_keys(question, here))
        yield from (one for one in found if isinstance(one, Watched))
        parts = [one for one in found if not isinstance(one, Watched)]
    totals: dict[str, Any] = {}
    for part in parts:
        if isinstance(part, SqlQuery):
            yield from judged(part, here, totals, single_owner=False)
        elif isinstance(part, SqlQuantile):
            yield _quantile(part, here)
    if here.unique and not DOMAINS.search(asked.text):
        yield from _table(question, asked, here, totals)


def judged(
    question: SqlQuery,
    here: World,
    totals: dict[str, Any] | None = None,
    *,
    single_owner: bool = True,
) -> Judged:
    """Yield what is wrong with a question's relations, and how to see it when people leave.

    Where keys are unique the engine's own answer to the statement as it is written is the judge,
    on the whole and on rows from which somebody's were deleted. Where they are not, rows of two
    people do not meet inside one person's rows, and only leaving is judged. ``totals`` is told
    what the relations add up to.
    """
    gathered = gather_tuples(here.database, question)
    if totals is not None:
        totals[str(question)] = [relation.total for relation in gathered.relations]
    rewritten = question.rewrite(here.database.schema)
    own = ""
    if single_owner and here.unique and not DOMAINS.search(question.text):
        own = question.text
        try:
            answer = here.part.connection.execute(own).fetchone()[0]
            yield from _engine_says(gathered.relations[0].total, float(answer or 0))
        except STOPS:
            own = ""

    def judge(who: Who, rows: Any, theirs: float | None) -> Iterator[str]:
        fresh = gather(rewritten, rows)
        found = [summary(relation, fresh.names) for relation in fresh.relations]
        expected = without(gathered, who)
        if found != expected:
            yield f"{found} instead of {expected}"
        if theirs is not None:
            yield from _engine_says(fresh.relations[0].total, theirs)
        pairs = zip(gathered.relations, fresh.relations, strict=True)
        moved = sum(abs(before.total - after.total) for before, after in pairs)
        if rewritten.once and moved > rewritten.term * (1 + 1e-9):
            yield f"takes {moved} away, and one row is {rewritten.term} at most"

    yield Watched(rewritten.text, judge, own)


def _engine_says(mine: float, answer: float) -> Iterator[str]:
    # What is not a number weighs nothing here, and makes the engine's sum none.
    if math.isfinite(answer) and not math.isclose(mine, answer, rel_tol=1e-6, abs_tol=1e-8):
        yield f"total {mine}, but the engine says {answer}"


def _quantile(question: SqlQuantile, here: World) -> Watched:
    """Watch whether leaving does more than take rows of one load away, that many."""
    text = question.rewrite(here.database.schema).text
    whole = value_counts(here.database._engine.fetch(text))

    def judge(who: Who, rows: Any, theirs: float | None) -> Iterator[str]:
        left = value_counts(rows)
        fallen, risen = whole - left, left - whole
        loads = {load for _, _, load in fallen}
        if risen or len(loads) > 1 or (fallen and fallen.total() > max(loads)):
            yield f"takes away {fallen}, and adds {risen}"

    return Watched(text, judge)


def value_counts(table: Any) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for row in table.to_pylist():
        value = row[VALUE]
        key = row.get(GROUP, 0), "NaN" if value != value else value, row[LOAD]
        found[key] += int(row[COPIES])
    return found


def _found_keys(question: DiscoveredTable, here: World) -> Iterator[Any]:
    """Watch how many people have each key, and yield what is asked of all keys."""
    found = question.bound
    assert found is not None
    most = found.keys_per_person
    if found.where != OF_PUBLIC:
        levels = () if found.numbers else weight_levels(most)
        one = levels[0][1] if levels else 1
        text = found.rows.counted(SALT, most, levels)
        whole = _people(here.database._engine.fetch(text))

        def judge(who: Who, rows: Any, theirs: float | None) -> Iterator[str]:
            left = _people(rows)
            fallen = whole - left
            # Of counts at most so many move by one; of weights the length is at most one.
            length = one**2 if levels else most
            if (
                left - whole
                or len(fallen) > most
                or max(fallen.values(), default=0) > one
                or sum(moved**2 for moved in fallen.values()) > length
            ):
                yield f"{left} of {whole}, and has {most} keys at most"

        yield Watched(text, judge)
    listed = here.database._engine.fetch(found.rows.listed(SALT)).sort_by(DIGEST)
    texts = [listed.column(f"{KEY}_{place}").to_pylist() for place in range(len(found.rows.kinds))]
    digests = listed.column(DIGEST).to_pylist()
    keys, _ = FoundKeys.of(question.names, found.rows.kinds, SALT, digests, texts, None)
    if keys.size:
        yield from table_of(question, found, keys).parts()


def _people(table: Any) -> Counter[str]:
    return Counter({row[DIGEST]: row[PEOPLE] for row in table.to_pylist()})


def _exact(question: Any, here: World, totals: Mapping[str, Any]) -> Any:
    """Return a table without noise: made of what the relations add up to, where they are known."""
    if isinstance(question, SqlQuery):
        return np.asarray(totals[str(question)])
    if not isinstance(question, SqlTable):
        return question.truth(here.database)
    values = {
        name: totals[name] if name in totals else leaf.query.truth(here.database)
        for name, leaf in question._leaves().items()
    }
    columns = {name: Column.exact(np.ravel(one), question.size) for name, one in values.items()}
    return question._table(columns, {}, None)


def _table(question: Any, asked: Asked, here: World, totals: Mapping[str, Any]) -> Iterator[str]:
    """Yield where a table differs from the engine's own."""
    try:
        theirs = here.part.connection.execute(asked.text).fetchall()
    except STOPS:
        return
    mine = _exact(question, here, totals)
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
    if isinstance(theirs, date):
        # A quantile between two days, or two seconds, is the earlier one; the engine has a time.
        return bool(mine == _earlier(theirs, whole=isinstance(mine, datetime)))
    if not math.isfinite(theirs):
        # What is not a number weighs nothing.
        return True
    # DuckDB cuts what it interpolates between decimals off to their digits.
    near = 0.0101 if type(theirs).__name__ == "Decimal" else 1e-6
    return mine is not None and math.isclose(float(mine), float(theirs), rel_tol=1e-6, abs_tol=near)


def _earlier(moment: date, *, whole: bool) -> date:
    if not isinstance(moment, datetime):
        return moment
    return moment.replace(microsecond=0) if whole else moment.date()
