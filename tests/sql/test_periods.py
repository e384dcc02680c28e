"""Units with a period: one participant's records of one day, week, month or year."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlglot import exp
from tests.audit.replay.engine import Case, replay_case
from tests.drawn import Drawn

import tulle
from tulle.core.errors import InputError, QueryError, UnitError
from tulle.core.guarantee import Guarantee
from tulle.core.period import Calendar
from tulle.core.unit import PERIODS, UNITS, Unit
from tulle.sql.compile import owned_rows
from tulle.sql.compile.select_rewriter import Rewriter
from tulle.sql.queries import person_totals_of
from tulle.sql.schema import schema as schema_module

duckdb = pytest.importorskip("duckdb")

OWNERS = {"orders": "person", "lines": "number -> orders[number].person", "friends": ["a", "b"]}
TIMES = {"orders": "made_on", "lines": "sent", "friends": "since"}
MAKE = (
    "CREATE TABLE orders (number INTEGER, person INTEGER, made_on DATE)",
    "CREATE TABLE lines (number INTEGER, sent TIMESTAMP, price INTEGER)",
    "CREATE TABLE friends (a INTEGER, b INTEGER, since DATE)",
    "CREATE TABLE people (id INTEGER)",
)
QUESTIONS = (
    "SELECT COUNT(*) FROM orders",
    "SELECT COUNT(*) FROM lines",
    "SELECT SUM(price) FROM lines WHERE price > 1",
    "SELECT COUNT(*) FROM orders o, lines l WHERE o.number = l.number",
    "SELECT COUNT(DISTINCT person) FROM orders",
    "SELECT COUNT(*) FROM friends f, friends g WHERE f.b = g.a",
    "SELECT COUNT(*) FROM orders o WHERE EXISTS (SELECT 1 FROM lines l WHERE l.number = o.number)",
)

Rows = dict[str, list[tuple[Any, ...]]]


def opened(rows: Rows, folder: Path | None = None) -> Any:
    connection = duckdb.connect()
    for statement in MAKE:
        connection.execute(statement)
    for table, listed in rows.items():
        for row in listed:
            connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    owners = OWNERS | {"people": "id"}
    return tulle.Database.connect(connection, owners=owners, times=TIMES)


def some_rows(seed: int) -> Rows:
    """Return rows of a few days around the turn of a year; some have no time."""
    chance = random.Random(seed)

    def day() -> date | None:
        if chance.random() < 0.15:
            return None
        return date(2025, 12, 26) + timedelta(days=chance.choice((0, 2, 3, 5, 6, 9, 10, 40)))

    def moment() -> datetime | None:
        found = day()
        hours = timedelta(hours=chance.choice((0, 12, 23)), minutes=59)
        return None if found is None else datetime.combine(found, datetime.min.time()) + hours

    orders = [(number, chance.randrange(3), day()) for number in range(5)]
    lines = [(chance.randrange(6), moment(), chance.randrange(4)) for _ in range(6)]
    friends = [(chance.randrange(3), chance.randrange(3), day()) for _ in range(4)]
    return {"orders": orders, "lines": lines, "friends": friends}


def period_of(when: date | None, period: str) -> int | None:
    """Return the number of the period by Python's own calendar."""
    if when is None:
        return None
    day = when.date() if isinstance(when, datetime) else when
    return Calendar(period).number(day)


def owned(rows: Rows, period: str) -> dict[tuple[str, int], set[tuple[int, int | None]]]:
    """Return for each row, by table and place, the pairs of person and period that it needs."""
    needs: dict[tuple[str, int], set[tuple[int, int | None]]] = {}
    made = {number: (person, period_of(day, period)) for number, person, day in rows["orders"]}
    for place, (number, *_) in enumerate(rows["orders"]):
        needs["orders", place] = {made[number]}
    for place, (number, when, _) in enumerate(rows["lines"]):
        if number in made:
            needs["lines", place] = {made[number], (made[number][0], period_of(when, period))}
    for place, (a, b, day) in enumerate(rows["friends"]):
        needs["friends", place] = {(a, period_of(day, period)), (b, period_of(day, period))}
    return needs


def without(rows: Rows, pair: tuple[int, int | None], period: str) -> Rows:
    needs = owned(rows, period)
    return {
        table: [
            row for place, row in enumerate(listed) if pair not in needs.get((table, place), ())
        ]
        for table, listed in rows.items()
    }


def check_neighbours(seed: int, period: str, questions: int = len(QUESTIONS)) -> None:
    """Compare the neighbours that the database has with rows deleted by hand."""
    rows, unit = some_rows(seed), Unit.of(f"participant-{period}")
    pairs = set().union(*owned(rows, period).values())
    database = opened(rows)
    found = list(database.neighbours(unit))
    assert len(found) == len(pairs)
    deleted = [opened(without(rows, pair, period)) for pair in pairs]
    for text in QUESTIONS[:questions]:
        question = tulle.sql(text)
        by_hand = sorted(question.truth(one) for one in deleted)
        assert sorted(question.truth(one) for one in found) == by_hand, text
        assert question.truth(database.under(unit)) == question.truth(database)


@pytest.mark.parametrize("period", ["week", "month"])
def test_neighbours_are_those_of_rows_deleted_by_hand(period: str) -> None:
    check_neighbours(0, period, 4)


@pytest.mark.slow
@pytest.mark.timed(1)
@pytest.mark.parametrize("period", PERIODS)
def test_many_neighbours_are_those_of_rows_deleted_by_hand(period: str, drawn: Drawn) -> None:
    for seed in drawn.seeds():
        check_neighbours(seed, period)


def order_time_only(self: Any, table: str) -> Any:
    """The broken twin: a line counts in the week of its order, whenever it was sent."""
    honest = HONEST_OWNERSHIP(self, table)
    ties = tuple(
        replace(tie, time=(tie.place, TIMES["orders"])) if tie.place != "t" else tie
        for tie in honest.ties
    )
    return replace(honest, ties=tuple(dict.fromkeys(ties)))


HONEST_OWNERSHIP = schema_module.Schema.ownership


def no_year(schema: Any, tie: Any) -> Any:
    """The broken twin: the week's number without its year, and weeks that end with the year."""
    day = exp.cast(owned_rows.column(tie.time[1], tie.time[0]), "DATE")
    parts = [exp.Extract(this=exp.Var(this=f), expression=day.copy()) for f in ("WEEK", "YEAR")]
    texts = [exp.cast(exp.cast(part, "BIGINT"), "TEXT") for part in parts]
    joined = exp.DPipe(this=texts[0], expression=texts[1], safe=True)
    return exp.Coalesce(this=joined, expressions=[exp.Literal.string("none")])


def every_none(schema: Any, tie: Any) -> Any:
    """The broken twin: each record without a time is left out."""
    made = HONEST_PERIOD(schema, tie)
    return made.this


HONEST_PERIOD = owned_rows._period
TWIN_SEED = 0
"""Rows with a line that was sent in another week than its order, and with one week of two years."""

TWINS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "only the order's time": (schema_module.Schema, "ownership", order_time_only),
    "weeks that end with the year": (owned_rows, "_period", no_year),
    "no time, no owner": (owned_rows, "_period", every_none),
}


@pytest.mark.parametrize("twin", TWINS)
def test_broken_periods_are_caught(monkeypatch: pytest.MonkeyPatch, twin: str) -> None:
    monkeypatch.setattr(*TWINS[twin])
    with pytest.raises((AssertionError, TypeError)):
        check_neighbours(TWIN_SEED, "week", 2)


JOINED = (
    "SELECT COUNT(*) FROM orders o, orders p WHERE o.person = p.person",
    "SELECT COUNT(*) FROM orders o JOIN lines l ON l.number = o.number",
    "SELECT SUM(l.price) FROM (SELECT o.number AS n FROM orders o JOIN orders p ON o.person ="
    " p.person) q JOIN lines l ON l.number = q.n",
    "SELECT COUNT(*) FROM (SELECT number FROM orders UNION ALL SELECT o.number FROM orders o"
    " JOIN orders p ON o.person = p.person AND o.made_on = p.made_on) q",
    "SELECT COUNT(*) FROM orders o JOIN friends f ON f.a = o.person AND f.b = o.person",
)
"""Rows of one person each, of whichever periods."""


def left_out(seed: int, period: str) -> Iterator[str]:
    """Yield the questions that are answered without some of their rows, where no key is doubled."""
    database, unit = opened(some_rows(seed)), Unit.of(f"participant-{period}")
    for text in (*QUESTIONS, *JOINED):
        question: Any = tulle.sql(text).bind(database.under(unit))
        if question.single_owner:
            found = person_totals_of(database.under(unit), question).clipped(1e6)
            if found.tolist() != [question.truth(database)]:
                yield text


@pytest.mark.parametrize("period", PERIODS)
def test_rows_of_several_periods_of_one_person_are_not_left_out(period: str) -> None:
    assert [text for seed in range(3) for text in left_out(seed, period)] == []


def test_rows_of_one_person_that_pass_for_one_period_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest = Rewriter.project

    def by_person(self: Any, *given: Any, **more: Any) -> Any:
        made = honest(self, *given, **more)
        return replace(made, single_owner=bool(made.slots))

    monkeypatch.setattr(Rewriter, "project", by_person)
    assert {JOINED[0], JOINED[1]} <= set(left_out(0, "day"))


def test_paths_show_the_same_on_neighbours() -> None:
    """The whole path, replayed with the same noise on data and on neighbours of it."""
    rows = some_rows(1)
    pairs = sorted(set().union(*owned(rows, "week").values()), key=str)[:2]
    variants = [
        partial(opened, made) for made in (rows, *(without(rows, p, "week") for p in pairs))
    ]
    for text in QUESTIONS[1:2]:
        seen = replay_case(
            Case("orders, duckdb", "participant-week", variants, tulle.sql(text), "1", "1e-6")
        )
        assert seen.gives("ask"), seen.shown
        assert seen.findings == ()


def test_a_week_is_less_to_hide_than_a_person() -> None:
    """A person with an order each week weighs little in any one week, and much in all."""
    rows: Rows = {"orders": [(n, 1, date(2026, 1, 5) + timedelta(days=7 * n)) for n in range(40)]}
    database, question = opened(rows), tulle.sql("SELECT COUNT(*) FROM orders")
    unit = Unit.of("participant-week")
    assert {question.truth(one) for one in database.neighbours(unit)} == {39}
    assert {question.truth(one) for one in database.neighbours("participant")} == {0}
    release = tulle.release(database, question, unit=unit, epsilon=8)
    assert abs(release.value - 40) < 15
    assert "participant-week" in str(release.guarantee)


def test_what_cannot_be_divided_is_refused_in_words() -> None:
    database = opened(some_rows(0))
    weeks = {"unit": "participant-week", "epsilon": 1}
    for text in (
        "SELECT COUNT(*) FROM people",
        "SELECT COUNT(*) FROM people p, orders o WHERE p.id = o.person",
        "SELECT COUNT(*) FROM orders o WHERE o.person IN (SELECT id FROM people)",
    ):
        with pytest.raises(QueryError, match="it is there in every week"):
            tulle.release(database, tulle.sql(text), **weeks)  # type: ignore[arg-type]
        tulle.release(database, tulle.sql(text), unit="participant", epsilon=1)
    connection = duckdb.connect()
    connection.execute("CREATE TABLE trips (rider INTEGER, moment TIMESTAMPTZ, code INTEGER)")
    plain = tulle.Database.connect(connection, owners={"trips": "rider"})
    with pytest.raises(UnitError, match="Say which columns are times"):
        tulle.release(plain, tulle.sql("SELECT COUNT(*) FROM trips"), **weeks)  # type: ignore[arg-type]
    for times, words in (
        ({"trips": "moment"}, "timestamp without time zone"),
        ({"trips": "code"}, "has type INTEGER"),
        ({"trips": "when"}, "no column 'when'"),
        ({"other": "moment"}, "not a table with owners"),
    ):
        with pytest.raises(InputError, match=words):
            tulle.Database.connect(connection, owners={"trips": "rider"}, times=times)
    graph = tulle.Graph.from_edges([(0, 1)], nodes=3)
    with pytest.raises(UnitError, match="Nobody knows of which day an edge is"):
        tulle.release(graph, tulle.edges(), unit="edge-day", epsilon=1)
    with pytest.raises(UnitError, match="per participant-week"):
        tulle.release(graph, tulle.edges(), **weeks)  # type: ignore[arg-type]


def test_a_path_through_a_table_without_times_is_refused() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people (id INTEGER)")
    connection.execute("CREATE TABLE trips (rider INTEGER, day DATE)")
    over = {"people": "id", "trips": "rider -> people[id].id"}
    question = tulle.sql("SELECT COUNT(*) FROM trips")
    database = tulle.Database.connect(connection, owners=over, times={"trips": "day"})
    with pytest.raises(QueryError, match="on the way to its owners"):
        tulle.release(database, question, unit="participant-week", epsilon=1)
    database = tulle.Database.connect(
        connection, owners={"trips": "rider -> people[id].id"}, public=["people"],
        times={"trips": "day"},
    )  # fmt: skip
    assert tulle.release(database, question, unit="participant-week", epsilon=1).value is not None


@pytest.mark.parametrize("unit", UNITS)
def test_every_unit_has_its_words(unit: str) -> None:
    from tulle.core.wording import hidden
    from tulle.ledger.deployments import Deployment, release_record

    guarantee = Guarantee.of(unit, epsilon=1)
    assert hidden(guarantee)
    square = tulle.Graph.from_edges([(0, 1), (1, 2)], nodes=4)
    released = tulle.release(square, tulle.edges(), unit="edge", epsilon=1)
    about = Deployment("Trips", ["Town"], "Research", "Sweden")
    other = replace(released, guarantee=guarantee)
    assert release_record(other, about)
    assert "What epsilon means here" in other.report()


def test_a_guarantee_says_what_a_year_is() -> None:
    pure = Guarantee.of("participant-week", epsilon=Fraction(1, 10))
    assert "at most 54 weeks: epsilon = 5.4, pure. k weeks count k times" in str(pure.over_time)
    assert "any one participant's records of any one week" in str(pure.over_time)
    assert "rho = 72, zero" in str(Guarantee.of("participant-month", rho=Fraction(1, 2)).over_time)
    loose = Guarantee.of("participant-day", epsilon=1, delta=Fraction(1, 10**6))
    assert "nothing is promised" in str(loose.over_time)
    assert Guarantee.of("participant", epsilon=1).over_time is None


@pytest.mark.parametrize("count", [1, 2, 5])
def test_groups_by_the_sum_itself(count: int) -> None:
    import mpmath

    epsilon, delta = Fraction(1, 3), Fraction(1, 10**8)
    grouped = Guarantee.of("participant-day", epsilon=epsilon, delta=delta).of_group(count)
    assert grouped is not None
    with mpmath.workdps(60):
        e = mpmath.mpf(epsilon.numerator) / epsilon.denominator
        exact = sum(mpmath.exp(i * e) for i in range(count)) * mpmath.mpf(1) / 10**8
        stated = mpmath.mpf(grouped.delta.numerator) / grouped.delta.denominator
        assert stated >= exact
    assert grouped.epsilon == count * epsilon


# --- the same periods on every engine -----------------------------------------------------------

MOMENTS = [
    *(datetime(2025, 12, 20) + timedelta(hours=11 * step) for step in range(60)),
    *(datetime(year, month, day, 23, 59, 59) for year in (2, 1582, 1899, 1970, 2000, 2024, 9999)
      for month, day in ((1, 1), (2, 28), (3, 1), (10, 10), (12, 31))),
    datetime(2024, 2, 29), datetime(2026, 3, 29, 2, 30), datetime(2026, 10, 25, 2, 30),
]  # fmt: skip


def classes(database: Any, period: str) -> list[list[int]]:
    """Return which moments share a period, in an engine; each has its own person's number."""
    question = tulle.sql("SELECT COUNT(*) FROM moments")
    unit = Unit.of(f"participant-{period}")
    found: dict[str, list[int]] = {}
    whole = question.truth(database)
    sizes = [whole - question.truth(one) for one in database.neighbours(unit)]
    for _, identifier in database.under(unit).participants():
        found.setdefault(identifier, [])
    return [sorted(sizes), sorted(map(len, found))]


def expected(period: str) -> list[int]:
    counted: dict[int, int] = {}
    for moment in MOMENTS:
        number = period_of(moment, period)
        assert number is not None
        counted[number] = counted.get(number, 0) + 1
    return sorted([*counted.values(), 1])  # and one without a time


def check_steps_and_days(database: Any) -> None:
    """Steps of a stream, and the days of a period, are those of the calendar, in an engine."""
    from tulle.streams.question import Asked

    question = tulle.sql("SELECT COUNT(*) FROM moments")
    first = date(2025, 12, 20)
    for period in PERIODS:
        asked = Asked.of(
            database.under(Unit.of(f"participant-{period}")), question, every=period, first=first,
            steps=8, bound=1000,
        )  # fmt: skip
        calendar = Calendar(period)
        start = calendar.number(first)
        wanted = [0] * 8
        for moment in MOMENTS:
            if 0 <= (step := calendar.number(moment.date()) - start) < 8:
                wanted[step] += 1
        assert asked.totals(8, 1)[:, 0].tolist() == wanted
        assert asked.totals(2, 1)[:, 0].tolist() == wanted[:2]
        days = calendar.first_day(start + 1), calendar.last_day(start + 1)
        own = database.under(Unit.of(f"participant-{period}")).of_days(*days)
        assert question.bind(own).truth(own) == wanted[1]


def statements(kind: str) -> Iterator[str]:
    yield f"CREATE TABLE moments (person INTEGER, moment {kind})"
    for moment in MOMENTS:
        # isoformat writes years with four digits, as strftime does not everywhere
        yield f"INSERT INTO moments VALUES (1, '{moment.isoformat(sep=' ')}')"
    yield "INSERT INTO moments VALUES (1, NULL)"


@pytest.mark.parametrize(
    ("kind", "period"), [*(("DATE", period) for period in PERIODS), ("TIMESTAMP", "week")]
)
def test_periods_in_duckdb_are_those_of_the_calendar(kind: str, period: str) -> None:
    connection = duckdb.connect()
    for statement in statements(kind):
        connection.execute(statement)
    database = tulle.Database.connect(
        connection, owners={"moments": "person"}, times={"moments": "moment"}
    )
    assert classes(database, period)[0] == expected(period)
    if period == "week":
        for extreme in ("infinity", "-infinity", "5000-01-01 (BC)", "290000-01-01"):
            connection.execute(f"INSERT INTO moments VALUES (1, '{extreme}')")
        check_steps_and_days(database)


@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP"])
def test_periods_in_postgresql_are_those_of_the_calendar(postgres_url: str, kind: str) -> None:
    import adbc_driver_postgresql.dbapi as driver

    with driver.connect(postgres_url, autocommit=True) as link, link.cursor() as cursor:
        for statement in statements(kind):
            cursor.execute(statement)
    database = tulle.Database.connect(
        postgres_url, owners={"moments": "person"}, times={"moments": "moment"}
    )
    for period in PERIODS:
        assert classes(database, period)[0] == expected(period)
    with driver.connect(postgres_url, autocommit=True) as link, link.cursor() as cursor:
        for extreme in ("infinity", "-infinity", "4713-01-01 BC", "99999-01-01"):
            cursor.execute(f"INSERT INTO moments VALUES (1, '{extreme}')")
    for period in PERIODS:
        sizes = classes(database, period)[0]
        assert sum(sizes) == len(MOMENTS) + 5
    check_steps_and_days(database)
    database.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP_NTZ"])
def test_periods_in_spark_are_those_of_the_calendar(spark_session: Any, kind: str) -> None:
    rows = [(1, m.date() if kind == "DATE" else m) for m in MOMENTS] + [(1, None)]
    spark_session.createDataFrame(rows, f"person INT, moment {kind}").createOrReplaceTempView(
        "moments"
    )
    database = tulle.Database.connect(
        spark_session, owners={"moments": "person"}, times={"moments": "moment"}
    )
    for period in PERIODS:
        assert classes(database, period)[0] == expected(period)
    check_steps_and_days(database)


@pytest.mark.parametrize("value", ["infinity", "-infinity", "290000-01-01", "5000-01-01 (BC)"])
@pytest.mark.parametrize("period", PERIODS)
def test_days_beyond_the_calendar_have_a_period_too(value: str, period: str) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE moments (person INTEGER, moment DATE)")
    connection.execute(f"INSERT INTO moments VALUES (1, '{value}'), (1, '2026-01-01'), (2, NULL)")
    database = tulle.Database.connect(
        connection, owners={"moments": "person"}, times={"moments": "moment"}
    )
    assert classes(database, period)[0] == [1, 1, 1]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM (SELECT COUNT(*) AS n FROM orders GROUP BY person) WHERE n > 1",
        "SELECT COUNT(*) FROM orders o WHERE NOT EXISTS "
        "(SELECT 1 FROM orders p WHERE p.person = o.person AND p.number > o.number)",
        "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY person ORDER BY number) AS r "
        "FROM orders) WHERE r = 1",
        "SELECT number, COUNT(DISTINCT person) FROM (SELECT person, MAX(number) AS number "
        "FROM orders GROUP BY person) GROUP BY number",
    ],
)
def test_what_sees_all_records_of_a_person_is_refused_per_period(text: str) -> None:
    database = opened(some_rows(1))
    budget = {"epsilon": 1, "delta": 1e-6}
    assert tulle.release(database, tulle.sql(text), unit="participant", **budget)
    with pytest.raises(QueryError, match="inside one person's rows"):
        tulle.release(database, tulle.sql(text), unit="participant-week", **budget)


def key_moves(most: int) -> list[list[int]]:
    """Return by how much each key's number of people falls when somebody's week is gone."""
    from tulle.sql.keys.statements import DIGEST, PEOPLE

    asked = tulle.sql("SELECT number, COUNT(*) FROM orders GROUP BY number", keys_per_person=2)
    week = Unit.of("participant-week")
    found = []
    for seed in range(12):
        database = opened(some_rows(seed)).under(week)
        bound = asked.bind(database).bound
        counted = []
        for one in (database, *database.neighbours(week)):
            rows = bound.rewritten(one._schema, one._gone, asked.names, ())
            table = one._engine.fetch(rows.counted("0" * 32, most)).to_pydict()
            counted.append(dict(zip(table[DIGEST], table[PEOPLE], strict=True)))
        whole, *others = counted
        assert all(set(other) <= set(whole) for other in others)
        found += [[whole[key] - other.get(key, 0) for key in whole] for other in others]
    return found


def test_one_week_of_a_person_counts_for_as_many_keys_as_it_may() -> None:
    moves = key_moves(2)
    assert {move for one in moves for move in one} == {0, 1}
    assert max(map(sum, moves)) == 2
    # One key too many is caught.
    assert max(map(sum, key_moves(3))) == 3
