"""What people add to groups, clipped and added up by the engine."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from tests.sql.sql_generator import Generator
from tests.sql.sql_questions import GROUPED, QUESTIONS
from tests.sql.sql_worlds import connect, random_world

import tulle
from tulle.relations.mechanisms.grouped import InBall
from tulle.relations.mechanisms.single_owner import SingleOwnerRows
from tulle.sql.compile import person_totals
from tulle.sql.compile.gather import gather
from tulle.sql.compile.person_totals import PersonTotals, unit_of
from tulle.sql.data import Database
from tulle.sql.dialect import dialect_of
from tulle.sql.engines.base import Workspace
from tulle.sql.queries import SqlQuery, SqlSum, person_totals_of
from tulle.sql.queries import one_aggregate as sql

duckdb = pytest.importorskip("duckdb", reason="the extra tulle[sql] is not installed")

TAUS = (0.3, 2.5, 1e9)
POWERS = (1, 2)
OWN = 11
"""So many of the questions are about the shop."""

SHOP = """
    CREATE TABLE orders (number INTEGER, customer INTEGER, day INTEGER);
    CREATE TABLE line (orders INTEGER, price DOUBLE, cost DOUBLE);
    CREATE TABLE held (price DOUBLE);
    INSERT INTO orders SELECT range // 2, range % 7, range % 3 FROM range(40);
    INSERT INTO line SELECT range % 25, range % 9 - 6, range % 7 FROM range(90);
    INSERT INTO line VALUES (3, NULL, NULL), (NULL, 4, 4), (3, 'infinity', 'nan'), (4, 1e300, 50);
    INSERT INTO held VALUES (2), (-5);
"""
"""Numbers of orders occur twice, so that rows of two customers meet."""

JOINED = "FROM orders JOIN line ON line.orders = number"
DAYS = {"day": [0, 2, 9]}
MANY = {"day": [*range(5, 30), 2, 0, 1]}
"""In no order, and more than are compared one by one."""


def shop() -> Any:
    connection = duckdb.connect()
    connection.execute(SHOP)
    return tulle.Database.connect(
        connection,
        owners={"orders": "customer", "line": "orders -> orders[number]"},
        public=["held"],
        ranges={"line.cost": (0, 30)},
    )


@lru_cache(maxsize=1)
def questions() -> tuple[tuple[Any, SqlQuery], ...]:
    """Return questions whose rows are about one participant each."""
    return tuple(_questions())


def _questions() -> Iterator[tuple[Any, SqlQuery]]:
    whole = shop()
    asked = [
        sql(f"SELECT COUNT(*) {JOINED}"),
        sql(f"SELECT SUM(price) {JOINED}"),
        sql(f"SELECT SUM(cost) {JOINED}"),
        sql(f"SELECT day, SUM(price) {JOINED} GROUP BY day", groups=DAYS),
        sql(f"SELECT day, SUM(price * price) {JOINED} GROUP BY day", groups=DAYS),
        sql(f"SELECT day, SUM(cost) {JOINED} GROUP BY day", groups=DAYS),
        sql(f"SELECT day, SUM(cost) {JOINED} GROUP BY day", groups=MANY),
        sql("SELECT day, COUNT(*) FROM orders GROUP BY day", groups=DAYS),
        sql("SELECT day, COUNT(*) FROM orders GROUP BY day", groups=MANY),
        sql("SELECT COUNT(*) FROM orders WHERE day > 5"),
        sql("SELECT SUM(x) FROM (SELECT day AS x FROM orders UNION ALL SELECT price FROM held) u"),
    ]
    yield from ((whole, question.bind(whole)) for question in asked)
    for seed in range(2):
        database = connect(random_world(seed))
        texts = [*QUESTIONS[seed::2], *(Generator(seed * 50 + n).question() for n in range(10))]
        grouped = [sql(text, groups=groups) for text, groups in GROUPED]
        for question in [*map(sql, texts), *grouped]:
            bound = question.bind(database)
            if bound.single_owner:
                yield database, bound


def in_arrays(database: Any, question: SqlQuery) -> SingleOwnerRows:
    """Return the same from rows that were fetched, over relations."""
    assert question.bound is not None
    rows = database._engine.fetch(question.bound.text)
    signed = isinstance(question, SqlSum) and not question.positive
    return SingleOwnerRows(gather(question.bound, rows).relations, signed=signed)


def differences(most: int, taus: tuple[float, ...] = (1.0, 7.0)) -> tuple[int, int]:
    """Compare what the engine adds up with what comes over relations, for some questions."""
    wrong = asked = 0
    for database, question in questions()[:most]:
        owned = in_arrays(database, question)
        for power in POWERS:
            theirs: Any = owned if power == 1 else InBall(owned)
            mine = person_totals_of(database, question, power=power)
            asked += 1
            same = mine.groups == theirs.groups
            for tau in taus if same else ():
                same &= all(mine.decide(tau, j) == theirs.decide(tau, j) for j in range(9))
                near = 2.0**-40 * tau
                same &= np.allclose(mine.clipped(tau), theirs.clipped(tau), rtol=1e-12, atol=near)
            same &= np.allclose(mine.fixed, theirs.fixed, rtol=1e-12, atol=0)
            wrong += not same
    return wrong, asked


def test_the_engine_adds_up_as_relations_do() -> None:
    wrong, asked = differences(len(questions()), TAUS)
    assert wrong == 0
    assert asked > 40


FAULTS: dict[str, Callable[[str], str]] = {
    "rows of two": lambda text: text.replace(
        " WHERE q.__tulle_owner_1 = q.__tulle_owner_0", " WHERE TRUE"
    ),
    "nobody is somebody": lambda text: text.replace(
        "q.__tulle_owner_0 AS i", "COALESCE(q.__tulle_owner_0, 0) AS i"
    ),
    "signs": lambda text: text.replace("THEN -1", "THEN 1"),
    "groups": lambda text: text.replace("CAST(q.__tulle_group AS BIGINT)", "CAST(0 AS BIGINT)"),
    "nobody is cut": lambda text: text.replace(" / c.l", " / NULLIF(c.l, c.l)"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_added_up_otherwise_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twins: a row of two people is the first one's; a public row is a person's; and so on."""
    honest, entries = PersonTotals.statement, PersonTotals.entries.func
    monkeypatch.setattr(
        PersonTotals, "statement", lambda self, tau: FAULTS[fault](honest(self, tau))
    )
    monkeypatch.setattr(
        PersonTotals, "entries", property(lambda self: FAULTS[fault](entries(self)))
    )
    assert differences(OWN)[0] > 0


def test_loads_without_groups_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: of everybody, the largest amount instead of all of them."""
    monkeypatch.setattr(
        PersonTotals, "_load", lambda self, of: f"MAX(ABS({of}))" if self.groups > 1 else of
    )
    assert differences(OWN)[0] > 0


def test_more_loads_are_fetched_where_the_level_needs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(person_totals, "FETCHED", 1)
    assert differences(OWN) == (0, 2 * OWN)


def grown_in_between() -> tuple[float, float]:
    """Return what new people add, who came after loads were read, and what they may add."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visit AS SELECT i AS person, i % 4 AS day FROM range(8) t(i)")
    database = Database.connect(connection, owners={"visit": "person"})
    question = sql(ASKED[3][0], groups=ASKED[3][1]).bind(database)
    totals = person_totals_of(database, question, power=1)
    totals._space = Workspace(database._engine)
    assert totals.decide(1.5, 0)
    connection.execute("INSERT INTO visit SELECT 100 + i % 50, i % 4 FROM range(2000) t(i)")
    return float(totals.clipped(1.5).sum()) - 8.0, 50 * 1.5


def test_people_who_came_in_between_are_cut_where_nothing_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The twin: those that were the largest when they were counted are cut, and no others."""
    monkeypatch.setattr(person_totals, "FETCHED", 10)
    added, most = grown_in_between()
    assert added <= most
    monkeypatch.setattr(Workspace, "keeps", True)
    added, most = grown_in_between()
    assert added > most


# --- what one participant moves -------------------------------------------------------------------

PEOPLE = """
    CREATE TABLE visit (person VARCHAR, day INTEGER, price DOUBLE, wild DOUBLE);
    INSERT INTO visit SELECT 'p' || CAST(range % 5 AS VARCHAR), range * 7 % 4,
        (range * 37 % 101) / 7.0, (range * 53 % 97 - 40) / 3.0 FROM range(60);
    INSERT INTO visit VALUES ('P1', 1, 30, 5e-320), ('p1', 1, 1e-9, 1e308), ('tiny', 2, 1e-3, 2),
        ('many', 0, 20, 1), ('many', 1, 20, 1), ('many', 2, 20, -1), ('many', 3, 20, 1),
        ('far', 0, 1e308, -1e308), ('far', 3, 'infinity', 'nan'), (NULL, 1, 5, 5);
"""
RANGES = {"visit.price": (0, 30)}
ASKED = [
    ("SELECT COUNT(*) FROM visit", None),
    ("SELECT SUM(price) FROM visit", None),
    ("SELECT SUM(wild) FROM visit", None),
    ("SELECT day, COUNT(*) FROM visit GROUP BY day", {"day": range(4)}),
    ("SELECT day, SUM(price) FROM visit GROUP BY day", {"day": range(4)}),
    ("SELECT day, SUM(price - 10) FROM visit GROUP BY day", {"day": range(4)}),
    ("SELECT day, SUM(wild) FROM visit GROUP BY day", {"day": range(4)}),
]
CUTS = (1e-300, 1e-4, 9.3, 1e200)


def crowd(monkeypatch: pytest.MonkeyPatch, *, keeps: bool) -> float:
    """Return by how much most people who come while a question is answered exceed a threshold."""
    monkeypatch.setattr(person_totals, "FETCHED", 4)
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visit AS SELECT 0 AS who, 0 AS day FROM range(3)")
    database = tulle.Database.connect(connection, owners={"visit": "who"})
    if not keeps:
        monkeypatch.setattr(database._engine, "workspace", lambda: Workspace(database._engine))
    asked = sql("SELECT day, COUNT(*) FROM visit GROUP BY day", groups={"day": [0, 1]})
    totals = person_totals_of(database, asked.bind(database))
    assert totals.decide(1.0, 1)
    more = "SELECT r.range, d.range % 2 FROM range(1, 20) r, range(10) d"
    connection.execute(f"INSERT INTO visit {more}")
    people = 1 if keeps else 20
    return float(totals.clipped(1.0).sum()) - people


def test_who_comes_meanwhile_is_cut_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an engine keeps nothing, rows may change between two statements of one question."""
    assert crowd(monkeypatch, keeps=True) <= 0
    assert crowd(monkeypatch, keeps=False) <= 0
    # A broken version that takes those who were above the threshold for all who are.
    monkeypatch.setattr(Workspace, "keeps", True)
    assert crowd(monkeypatch, keeps=False) > 0


def visits() -> Database:
    connection = duckdb.connect()
    connection.execute(PEOPLE)
    return Database.connect(connection, owners={"visit": "person"}, ranges=RANGES)


def moves(
    database: Database,
    *,
    neighbours: bool = True,
    cuts: tuple[float, ...] = CUTS,
    asked: list[Any] = ASKED,
) -> tuple[float, dict[Any, Any]]:
    """Return the largest move of all sums, in thresholds, exactly; and all sums."""
    largest, found = Fraction(0), {}
    leaving = list(database.participants()) if neighbours else []
    for text, groups in asked:
        question: Any = sql(text, groups=groups).bind(database)
        for power in POWERS:
            whole = person_totals_of(database, question, power=power)
            level = [whole.decide(tau, j) for tau in cuts for j in range(8)]
            for tau in cuts:
                sums = whole.clipped(tau)
                found[text, power, tau] = (sums.tolist(), level)
            for who in leaving:
                left = Database._of(database._engine, database.schema, who)
                less = person_totals_of(left, question, power=power)
                for tau in cuts:
                    pairs = zip(found[text, power, tau][0], less.clipped(tau), strict=True)
                    steps = [abs(Fraction(a) - Fraction(float(b))) for a, b in pairs]
                    size = sum(step**power for step in steps) / Fraction(tau) ** power
                    largest = max(largest, size)
                    for j in range(7):
                        # N falls by at most one and never rises.
                        assert less.decide(tau, j) >= whole.decide(tau, j)
                        assert whole.decide(tau, j + 1) >= less.decide(tau, j)
    return float(largest), found


def test_nobody_moves_the_sums_by_more_than_the_threshold() -> None:
    largest, found = moves(visits())
    assert 0.99 < largest <= 1.0
    assert len(found) == len(ASKED) * len(POWERS) * len(CUTS)


@pytest.mark.parametrize("fault", ["loads rounded down", "units rounded up", "each group alone"])
def test_larger_moves_are_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twins: loads that are too small, parts rounded away from zero, a threshold for each group."""
    honest = PersonTotals.statement

    def broken(self: PersonTotals, tau: float) -> str:
        text = honest(self, tau)
        return text.replace("FLOOR(", "CEIL(") if fault == "units rounded up" else text

    if fault == "loads rounded down":
        monkeypatch.setattr(person_totals, "_UP", 1.0 - 2.0**-30)
    elif fault == "units rounded up":
        monkeypatch.setattr(person_totals, "_UNIT", 20)
    elif fault == "each group alone":
        monkeypatch.setattr(
            PersonTotals,
            "_people",
            lambda self, of: f"SELECT i, MAX(ABS(w)) AS l FROM ({self.entries}) x GROUP BY i",
        )
    monkeypatch.setattr(PersonTotals, "statement", broken)
    assert moves(visits(), cuts=(9.3,), asked=ASKED[4:5])[0] > 1.0


def test_a_unit_is_a_power_of_two() -> None:
    for tau in (1e-70, 0.3, 1.0, 1e100):
        assert math.frexp(unit_of(tau))[0] == 0.5
        assert 2.0**-51 < unit_of(tau) / tau <= 2.0**-49


def sums_in_parts(
    values: list[float], top: int, low: int, up: float, groups: int | None = None
) -> float:
    totals = PersonTotals.__new__(PersonTotals)
    totals._dialect, totals._double = dialect_of("duckdb"), "DOUBLE"
    totals.groups = len(values) if groups is None else groups
    text = totals._sum_in_parts("v", top, low, up)
    rows = "SELECT unnest(?::DOUBLE[]) AS v"
    found: float = (
        duckdb.connect().execute(f"SELECT {text} FROM ({rows}) t", [values]).fetchone()[0]
    )
    return found


def naive_in_parts(rng: random.Random) -> int:
    """Return how often an amount in every group, each near the most, is added in some order."""
    found = 0
    for groups in (2, 90, 128, 129, 5000):
        most = [2.0**24 * (1 - rng.random() * 2.0**-20) for _ in range(groups)]
        shuffled = [rng.sample(most, groups) for _ in range(4)]
        found += len({sums_in_parts(order, 24, -60, 0.5) for order in shuffled}) > 1
    return found


def test_parts_that_are_too_wide_for_the_groups_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(person_totals, "_PART", 58)
    assert naive_in_parts(random.Random(1)) > 0


def test_sums_in_parts_are_those_of_fractions_in_any_order() -> None:
    """Numbers of very different sizes, up to the ends that are declared, beside exact sums."""
    rng = random.Random(1)
    naive = 0
    for _ in range(60):
        exponent, power = rng.randint(-240, 240), rng.choice(POWERS)
        top, low = power * (exponent + 24), power * exponent - (60, 56)[power - 1]
        sizes = [rng.random() * 2.0 ** rng.randint(-80, 24) for _ in range(rng.randint(0, 20))]
        values = [(one * 2.0**exponent) ** power for one in (*sizes, 1.0, 2.0**24)]
        groups = rng.choice((len(values), 90, 2**12, 2**22))
        found = {
            sums_in_parts(order, top, low, 0.5, groups)
            for order in (values, values[::-1], rng.sample(values, len(values)))
        }
        naive += len({sum(values), sum(values[::-1])}) > 1
        assert len(found) == 1
        true = sum(map(Fraction, values))
        most = (true + len(values) * Fraction(2) ** low) * (1 + Fraction(1, 2**50))
        assert true * (1 - Fraction(1, 2**50)) <= Fraction(found.pop()) <= most
    assert naive > 5  # added as they come they would differ
    assert naive_in_parts(rng) == 0
    counts = [float(rng.randint(1, 2**31)) for _ in range(50)]
    assert sums_in_parts(counts, 31, 0, 0.0) == sum(counts)
    squares = sum(int(one) ** 2 for one in counts)
    found_squares = sums_in_parts([one * one for one in counts], 62, 0, 0.0)
    assert math.isclose(found_squares, squares, rel_tol=1e-15)


# --- engines --------------------------------------------------------------------------------------


def test_the_order_of_rows_changes_nothing() -> None:
    found = []
    for order in ("rowid", "-rowid", "hash(rowid)"):
        connection = duckdb.connect()
        connection.execute(PEOPLE)
        connection.execute(f"CREATE TABLE other AS SELECT * FROM visit ORDER BY {order}")
        connection.execute("DROP TABLE visit; ALTER TABLE other RENAME TO visit")
        connection.execute("SET threads = 1")
        database = Database.connect(connection, owners={"visit": "person"}, ranges=RANGES)
        found.append(moves(database, neighbours=False)[1])
    assert found[0] == found[1] == found[2]


def same_sums(one: dict[Any, Any], other: dict[Any, Any]) -> None:
    for key, (sums, level) in one.items():
        text, power, tau = key
        theirs, their_level = other[key]
        assert level == their_level, key
        if "COUNT" in text:
            assert sums == theirs, key
        # Norms are rounded up to steps, of which tiny contributions have few.
        near = tau * (2.0**-40 if power == 1 else 2.0**-20)
        assert np.allclose(sums, theirs, rtol=1e-13, atol=near), key


def test_postgresql_adds_up_alike(postgres_url: str) -> None:
    import adbc_driver_postgresql.dbapi as driver

    rows = duckdb.connect()
    rows.execute(PEOPLE)
    listed = rows.execute("SELECT * FROM visit").fetchall()
    texts = ", ".join(f"({', '.join(map(_quoted, row))})" for row in listed)
    with driver.connect(postgres_url, autocommit=True) as link, link.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE visit (person TEXT, day INTEGER, price DOUBLE PRECISION,"
            " wild DOUBLE PRECISION)"
        )
        cursor.execute(f"INSERT INTO visit VALUES {texts}")
    database = Database.connect(postgres_url, owners={"visit": "person"}, ranges=RANGES)
    try:
        same_sums(moves(visits(), neighbours=False)[1], moves(database, neighbours=False)[1])
    finally:
        database.close()


def _quoted(value: Any) -> str:
    return "NULL" if value is None else f"'{value}'"


@pytest.mark.filterwarnings("ignore")
def test_spark_adds_up_alike(spark_session: Any) -> None:
    rows = duckdb.connect()
    rows.execute(PEOPLE)
    table = rows.sql("SELECT * FROM visit").to_arrow_table()
    spark_session.createDataFrame(table).createOrReplaceTempView("visit")
    try:
        database = Database.connect(spark_session, owners={"visit": "person"}, ranges=RANGES)
        some: Any = {"neighbours": False, "cuts": (1e-300, 9.3), "asked": ASKED[3:]}
        same_sums(moves(visits(), **some)[1], moves(database, **some)[1])
    finally:
        spark_session.catalog.dropTempView("visit")
