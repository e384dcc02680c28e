"""The audit's view of databases: tiny ones whose people really come and go, and their answers.

Each database is made of rows of its own, so that who leaves is physically gone: that the tuples of
a neighbour are the tuples without that participant is not assumed anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from typing import Any, ClassVar

import numpy as np

from tulle.audit.engine.broken import name_of
from tulle.audit.engine.findings import Finding
from tulle.audit.engine.kind import AuditView, Description
from tulle.audit.engine.world import World
from tulle.audit.relations.kind import OPTIONS, Remembered, law_of_total, seen_total
from tulle.audit.sql.grouped import grouped_findings
from tulle.audit.sql.partition_selection import selection_findings
from tulle.audit.sql.private_ranges import (
    private_databases,
    private_questions,
    range_findings,
)
from tulle.audit.sql.quantiles import quantile_findings
from tulle.audit.sql.single_owner import law_of_totals, one_row_findings
from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Terms
from tulle.core.query import Query
from tulle.core.unit import Unit
from tulle.noise import SeededSource
from tulle.relations.data import Relation
from tulle.relations.mechanisms.recursive import RecursiveSettings
from tulle.relations.mechanisms.single_owner import SingleOwnerRows
from tulle.sql.compile.gather import gather
from tulle.sql.data import Database
from tulle.sql.mechanisms.truncation import DatabaseRecursive, OnDatabase
from tulle.sql.queries import SqlQuery, one_aggregate, sql
from tulle.sql.tables.quantiles import SqlQuantile

Rows = tuple[tuple[int, int], ...]
"""What one person has: the place and the cost of each visit."""
People = tuple[Rows, ...]

_PAIRS = "visit AS a JOIN visit AS b ON a.place = b.place"

VISITS = sql("SELECT COUNT(*) FROM visit")
COSTS = sql("SELECT SUM(cost) FROM visit")
VISITS_BY_PLACE = one_aggregate(
    "SELECT place, COUNT(*) FROM visit GROUP BY place", groups={"place": [0, 1]}
)
COSTS_BY_PLACE = one_aggregate(
    "SELECT place, SUM(cost) FROM visit GROUP BY place", groups={"place": [0, 1]}
)
MEETINGS = sql(f"SELECT COUNT(*) FROM {_PAIRS} AND a.person < b.person")
DIFFERENCES = sql(f"SELECT SUM(a.cost - b.cost) FROM {_PAIRS}")
MEETINGS_BY_PLACE = one_aggregate(
    f"SELECT a.place, COUNT(*) FROM {_PAIRS} GROUP BY a.place", groups={"place": [0, 1]}
)
PLACES = sql("SELECT COUNT(DISTINCT place) FROM visit")

QUESTIONS: tuple[Query, ...] = (
    VISITS,
    COSTS,
    VISITS_BY_PLACE,
    COSTS_BY_PLACE,
    MEETINGS,
    DIFFERENCES,
    MEETINGS_BY_PLACE,
    PLACES,
)
"""Rows of one owner and of several, of both signs, in groups; tuples with several derivations."""

DRAWN = (VISITS, COSTS, MEETINGS)

STATES: tuple[Rows, ...] = (
    (),
    ((0, 3), (1, -2)),
    ((1, 1), (1, 1), (1, 50)),
    ((0, 3),),
    ((1, 1),),
)
"""What a person may have; the first: nothing, so they are not in the database."""

WORLDS: dict[int, tuple[int, int]] = {2: (1, 5), 3: (2, 5), 4: (3, 3), 5: (3, 4)}
"""For each size, how many people there are, and how many states each may be in."""


@lru_cache(maxsize=256)
def database(people: People) -> Database:
    """Return the made-up database of these people."""
    import duckdb

    connection = duckdb.connect(config={"threads": 1})
    connection.execute("CREATE TABLE visit (person INTEGER, place INTEGER, cost INTEGER)")
    listed = [(who, *visit) for who, visits in enumerate(people) for visit in visits]
    if listed:
        connection.execute(f"INSERT INTO visit VALUES {', '.join(map(str, listed))}")
    made = Database.connect(connection, owners={"visit": "person"})
    _known[id(made)] = people
    return made


_known: dict[int, People] = {}
_relations: dict[tuple[SqlQuery, People], tuple[Relation, ...]] = {}


def relations(query: SqlQuery, dataset: Database) -> tuple[Relation, ...]:
    """Return the tuples of each group; a statement is compiled once, for the schema alone."""
    key = query, _known[id(dataset)]
    if key not in _relations:
        rewritten = _rewritten(query)
        _relations[key] = gather(rewritten, dataset._engine.fetch(rewritten.text)).relations
    return _relations[key]


@lru_cache(maxsize=64)
def _rewritten(query: SqlQuery) -> Any:
    return query.rewrite(database(((),))._schema)


@lru_cache(maxsize=64)
def bound(query: SqlQuery) -> SqlQuery:
    """Return a question with what the schema, the same in all of these databases, says of it."""
    return query.bound_to(database(((),)).facts(Unit.of("participant")))


def priced_questions() -> list[Query]:
    """Return questions on declared ranges: quantiles, tables of one row a person, unlisted keys."""
    plain, grouped = "SELECT SUM(cost) FROM visit", "SELECT SUM(cost) FROM visit GROUP BY place"
    places = (0, 1, 2)
    return [
        *(SqlQuantile(plain, "duckdb", (), (), Fraction(at)) for at in ("0", "0.5", "0.9")),
        SqlQuantile(grouped, "duckdb", (("place", places),), (), Fraction(1, 2)),
        sql("SELECT COUNT(*) FROM person"),
        sql("SELECT SUM(cost) FROM person"),
        one_aggregate(
            "SELECT place, SUM(cost) FROM person GROUP BY place", groups={"place": places}
        ),
        sql("SELECT place, COUNT(*) AS n, AVG(cost) AS mean FROM visit GROUP BY place"),
        sql("SELECT place, COUNT(DISTINCT id) AS n FROM person GROUP BY place", minimum=2),
        sql(
            "SELECT place, cost, SUM(cost) FROM visit GROUP BY 1, 2", keys_per_person=40, other=True
        ),
        sql("SELECT v.place, COUNT(*) FROM visit v, visit w WHERE v.cost < w.cost GROUP BY 1"),
        one_aggregate(
            f"SELECT a.place, COUNT(*) FROM {_PAIRS} GROUP BY a.place", groups={"place": places}
        ),
        one_aggregate(
            f"SELECT a.place, SUM(a.cost - b.cost) FROM {_PAIRS} GROUP BY a.place",
            groups={"place": places},
        ),
    ]


@lru_cache(maxsize=1)
def priced_databases() -> tuple[Database, ...]:
    """Return a database in which a few people have rows, and one in which nobody has."""
    import duckdb

    made = []
    for rows in ("range(7)", "range(0)"):
        connection = duckdb.connect()
        connection.execute(
            "CREATE TABLE visit AS SELECT range % 4 AS person, range % 3 AS place, "
            f"range - 2 AS cost FROM {rows}"
        )
        connection.execute(
            "CREATE TABLE person (id INTEGER PRIMARY KEY, place INTEGER, cost INTEGER);"
            f"INSERT INTO person SELECT range, range % 3, range - 2 FROM {rows}"
        )
        ranges = {"visit.cost": (-10, 10), "person.cost": (-10, 10)}
        owners = {"visit": "person", "person": "id"}
        made.append(Database.connect(connection, owners=owners, ranges=ranges))
    return tuple(made)


@registry.register("audit", "database", "view")
class AuditedDatabases(AuditView):
    """Databases of up to three people with a few rows each."""

    name: ClassVar[str] = "database"
    private: ClassVar[tuple[str, ...]] = ("error", "threshold", "thresholds")
    examined_with: ClassVar[Mapping[str, Sequence[Parameters]]] = {
        "recursive": OPTIONS["recursive"],
        "race": OPTIONS["race"][:2],
    }
    alike_sizes: ClassVar[tuple[int, ...]] = (2,)
    costly: ClassVar[bool] = True
    own_checks: ClassVar[Mapping[str, Callable[[], list[Finding]]]] = {
        "gaussian": grouped_findings,
        "quantile": quantile_findings,
        "laplace": one_row_findings,
        "partition_selection": selection_findings,
        "private_ranges": range_findings,
    }

    def priced(self, mechanism: Mechanism) -> Iterator[tuple[Query, Dataset]]:
        yield from _priced()

    def world(self, size: int) -> World:
        return _world(*WORLDS[min(max(size, 2), 5)])

    def asked(self, mechanism: Mechanism) -> Sequence[Query]:
        return QUESTIONS if isinstance(mechanism, OnDatabase) else ()

    def drawn_of(self, asked: Sequence[Query], name: str) -> Sequence[Query]:
        return [query for query in asked if query in DRAWN]

    def law_of(
        self, mechanism: Mechanism, terms: Terms, settings: Parameters, dataset: Dataset
    ) -> Description:
        assert isinstance(mechanism, OnDatabase)
        assert isinstance(dataset, Database)
        assert isinstance(terms.query, SqlQuery)
        query, found = bound(terms.query), relations(terms.query, dataset)
        if query.single_owner and name_of(mechanism) == "recursive":
            signed = mechanism.signed(query)
            totals = SingleOwnerRows(found, signed=signed)
            law = law_of_totals(
                RecursiveSettings.read(settings), totals, signed=signed, integral=query.integral
            )
            return Description((("answer", law),))
        laws = [
            law_of_total(
                mechanism,
                query,
                settings,
                relation,
                partial(mechanism.truncations, query, relation),
            )
            for relation in found
        ]
        return Description(tuple((f"group {place}", law) for place, law in enumerate(laws)))

    def draw(self, mechanism: Mechanism, terms: Terms, settings: Parameters, dataset: Any) -> Any:
        """Compile and fetch once, and run on what was fetched, if seeded runs are then the same."""
        assert isinstance(mechanism, OnDatabase)
        assert isinstance(terms.query, SqlQuery)
        query, found = bound(terms.query), relations(terms.query, dataset)
        if query.single_owner and isinstance(mechanism, DatabaseRecursive):
            totals = SingleOwnerRows(found, signed=mechanism.signed(query))

            def run(source: Any = None) -> Outcome:
                return mechanism.run_totals(query, settings, totals, source)
        else:
            sides = mechanism.truncations(query, found[0])
            parts: Any = [(sign, Remembered(side)) for sign, side in sides]

            def run(source: Any = None) -> Outcome:
                return mechanism.run_parts(query, settings, parts, source)

        def whole(source: Any = None) -> Outcome:
            return mechanism.run(terms, settings, dataset, source)

        known = type(mechanism).run in (DatabaseRecursive.run, OnDatabase.run)
        same = all(run(SeededSource(seed)) == whole(SeededSource(seed)) for seed in range(2))
        return run if known and same else whole

    def finish(
        self, mechanism: Mechanism, terms: Terms, settings: Parameters
    ) -> Callable[[tuple[Any, ...]], Hashable]:
        return lambda parts: parts[0]

    def observe(self, outcome: Outcome) -> Hashable:
        return seen_total(outcome)

    def small(self, query: Query) -> tuple[Dataset, Dataset]:
        # One person is in much, and enough others in a little, for any threshold to matter.
        others: People = (((0, 3), (1, -2)), ((1, 1), (1, 1)), ((0, 3),), ((0, 2),), ((1, 4),))
        return database((((0, 9), (1, 5), (0, -4)), *others)), database(((), *others))

    def show(self, dataset: Dataset) -> str:
        people = _known[id(dataset)]
        shown = [" ".join(f"{place}:{cost}" for place, cost in rows) for rows in people if rows]
        return " | ".join(shown) or "nobody"

    def odd_questions(self) -> Sequence[Query]:
        return [
            VISITS,
            sql("SELECT COUNT(*) FROM nothing"),
            sql("SELECT SUM(person / 0) FROM visit"),
            sql("SELECT place, SUM(cost) FROM visit GROUP BY place", groups={"place": ["x", None]}),
        ]


@lru_cache(maxsize=1)
def _priced() -> list[tuple[Query, Dataset]]:
    """Return questions bound to the databases themselves: keys are not among the facts."""
    cases = (
        *product(priced_questions(), priced_databases()),
        *product(private_questions(), private_databases()),
    )
    return [(query.bind(dataset, {}), dataset) for query, dataset in cases]


@lru_cache(maxsize=8)
def _world(count: int, states: int) -> World:
    """Return the databases of so many people; neighbours are those that one person has left."""
    everyone = list(product(STATES[:states], repeat=count))
    place = {people: at for at, people in enumerate(everyone)}
    pairs = [
        pair
        for people, at in place.items()
        for who in range(count)
        if people[who]
        for there in [place[(*people[:who], (), *people[who + 1 :])]]
        for pair in ((at, there), (there, at))
    ]
    first, second = np.array(sorted(set(pairs)), dtype=np.int64).T
    datasets = [database(people) for people in everyone]
    name = f"databases of up to {count} people, {states} states each"
    return World(name, Unit.of("participant"), datasets, first, second, 0)
