"""No row makes an engine stop: every supported expression, on values at the edges of types."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.drawn import Drawn, are_enough
from tests.sql.sql_extremes import (
    TAME,
    TYPES,
    compiled,
    expressions,
    inserted,
    nested,
    rows,
    schema,
)

import tulle
from tulle.core.errors import QueryError, TulleError
from tulle.sql.compile import statements
from tulle.sql.data import Database
from tulle.sql.dialect import dialect_of
from tulle.sql.engines.base import EngineError
from tulle.sql.engines.postgresql import conversions as postgresql_conversions
from tulle.sql.expressions import conversions, total
from tulle.sql.expressions.entry import with_arguments
from tulle.sql.queries import one_aggregate, relations_of, sql

duckdb = pytest.importorskip("duckdb", reason="the extra tulle[sql] is not installed")

BATCH = 120
"""So many expressions are run in one statement."""


def in_duckdb(listed: list[dict[str, str | None]]) -> Database:
    connection = duckdb.connect()
    connection.execute(
        f"CREATE TABLE extreme ({', '.join(f'{n} {k}' for n, k in TYPES['duckdb'].items())})"
    )
    connection.execute(f"INSERT INTO extreme VALUES {inserted('duckdb', listed)}")
    return Database.connect(connection, owners={"extreme": "who"})


def in_postgres(url: str, listed: list[dict[str, str | None]]) -> Database:
    import adbc_driver_postgresql.dbapi as driver

    with driver.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS extreme")
        kinds = ", ".join(f"{n} {k}" for n, k in TYPES["postgres"].items())
        cursor.execute(f"CREATE TABLE extreme ({kinds})")
        cursor.execute(f"INSERT INTO extreme VALUES {inserted('postgres', listed)}")
    return Database.connect(url, owners={"extreme": "who"})


def in_spark(session: Any, listed: list[dict[str, str | None]]) -> Database:
    names = ", ".join(TYPES["spark"])
    session.sql(
        f"SELECT * FROM VALUES {inserted('spark', listed)} AS t({names})"
    ).createOrReplaceTempView("extreme")
    return Database.connect(session, owners={"extreme": "who"})


def failing(database: Database, texts: list[str]) -> list[str]:
    """Return the expressions on which the engine stops."""
    dialect = database.schema.dialect

    def stops(part: list[str]) -> bool:
        taken, _, query = compiled(part, dialect)
        statement = query.sql(dialect=dialect)
        try:
            database._engine.check(statement)
            database._engine.fetch(statement)
        except (EngineError, QueryError):
            return bool(taken)
        return False

    def search(part: list[str]) -> Iterator[str]:
        if stops(part):
            halves = [part[: len(part) // 2], part[len(part) // 2 :]]
            found = [text for half in halves for text in search(half)] if len(part) > 1 else part
            # Some stop the engine only next to others, with which they share a part.
            yield from found or [" and ".join(part)]

    # Those known to be taken fill whole statements; of others, the refused ones leave gaps.
    return [
        f for start in range(0, len(texts), BATCH) for f in search(texts[start : start + BATCH])
    ]


@cache
def check_taken(dialect: str) -> list[str]:
    """Check that every entry is supported for some kinds, and return all that is."""
    taken, refused, _ = compiled(expressions(dialect), dialect)
    assert len(taken) > len(refused)
    return taken


def test_duckdb_stops_at_nothing() -> None:
    database = in_duckdb(rows("duckdb"))
    assert failing(database, check_taken("duckdb")) == []
    assert failing(database, nested("duckdb", 1, 300)) == []


def test_postgresql_stops_at_nothing(postgres_url: str) -> None:
    database = in_postgres(postgres_url, rows("postgres"))
    assert failing(database, check_taken("postgres")) == []
    assert failing(database, nested("postgres", 1, 300)) == []
    database.close()


@pytest.fixture
def either_mode(spark_session: Any) -> Iterator[Any]:
    """The Spark session; its mode, in which it fails or does not, is set back afterwards."""
    before = spark_session.conf.get("spark.sql.ansi.enabled")
    yield spark_session
    spark_session.conf.set("spark.sql.ansi.enabled", before)


@pytest.mark.filterwarnings("ignore")
def test_spark_stops_at_nothing(either_mode: Any) -> None:
    database = in_spark(either_mode, rows("spark"))
    taken = check_taken("spark")
    # Every other mode and every fifth expression; all of them are in the slow test.
    for place, mode in enumerate(("true", "false")):
        either_mode.conf.set("spark.sql.ansi.enabled", mode)
        assert failing(database, taken[place * 3 :: 12]) == []
        assert failing(database, nested("spark", place, 30)) == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", ["true", "false"])
def test_spark_stops_at_nothing_at_all(either_mode: Any, mode: str) -> None:
    either_mode.conf.set("spark.sql.ansi.enabled", mode)
    database = in_spark(either_mode, rows("spark"))
    assert failing(database, check_taken("spark")) == []
    assert failing(database, nested("spark", 5, 300)) == []


@pytest.mark.slow
@pytest.mark.timed(3)
def test_duckdb_and_postgresql_stop_at_nothing_nested(drawn: Drawn, postgres_url: str) -> None:
    one, other = in_duckdb(rows("duckdb")), in_postgres(postgres_url, rows("postgres"))
    for seed in drawn.seeds():
        assert failing(one, nested("duckdb", seed, 300)) == []
        assert failing(other, nested("postgres", seed, 300)) == []
    other.close()


def unguarded(monkeypatch: pytest.MonkeyPatch, dialect: str, written: str) -> None:
    """The twin: one entry is run as it was written."""
    known = dialect_of(dialect)
    (name,) = {entry.name for entry in total.ENTRIES if entry.written == written} - {
        "shift by days",
        "days between",
    }
    guarded = known.forms[name]

    def plain(node: Any, given: list[conversions.Typed], dialect: Any) -> conversions.Typed:
        made = with_arguments(node, given, "this", "expression")
        return conversions.Typed(made, guarded(node, given, dialect).kind)

    monkeypatch.setattr(type(known), "forms", {**known.forms, name: plain})


@pytest.mark.parametrize("written", ["{} + {}", "{} * {}", "ABS({})"])
def test_one_unguarded_node_is_caught_in_duckdb(
    written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unguarded(monkeypatch, "duckdb", written)
    assert failing(in_duckdb(rows("duckdb")), [written.format("x.w", "y.w")])


@pytest.mark.parametrize(
    "written", ["{} + {}", "{} * {}", "{} / {}", "{} % {}", "-{}", "{} + INTERVAL '3' MONTH"]
)
def test_one_unguarded_node_is_caught_in_postgresql(
    written: str, monkeypatch: pytest.MonkeyPatch, postgres_url: str
) -> None:
    database = in_postgres(postgres_url, rows("postgres"))
    arguments = ("x.moment",) if "INTERVAL" in written else ("x.w", "y.w")
    unguarded(monkeypatch, "postgres", written)
    assert failing(database, [written.format(*arguments)])
    database.close()


@pytest.mark.filterwarnings("ignore")
def test_one_unguarded_node_is_caught_in_spark(
    monkeypatch: pytest.MonkeyPatch, spark_session: Any
) -> None:
    database = in_spark(spark_session, rows("spark"))
    for written in ("{} + {}", "ABS({})", "FLOOR({})"):
        with monkeypatch.context() as twin:
            unguarded(twin, "spark", written)
            column = "f" if written == "FLOOR({})" else "w"
            assert failing(database, [written.format(f"x.{column}", f"y.{column}")])


def test_what_occurs_twice_is_tried_by_itself() -> None:
    """DuckDB works out what two TRYs share before both, and outside of them."""
    connection = in_duckdb(rows("duckdb"))._engine._connection  # type: ignore[attr-defined]
    twice = "SELECT TRY(CAST(s AS INTEGER) + CAST(s AS INTEGER)) FROM extreme"
    with pytest.raises(duckdb.Error):
        connection.execute(twice).fetchall()
    apart = "SELECT TRY(CAST(s AS INTEGER) + 1), TRY(CAST(s AS INTEGER) + 2) FROM extreme"
    with pytest.raises(duckdb.Error):
        connection.execute(apart).fetchall()
    assert failing(in_duckdb(rows("duckdb")), ["CAST(x.s AS INTEGER) + CAST(x.s AS INTEGER)"]) == []


POSITIONS = {
    "where": "SELECT COUNT(*) FROM extreme x WHERE ({v}) IS NULL",
    "condition": "SELECT COUNT(*) FROM extreme x WHERE {v}",
    "or": "SELECT COUNT(*) FROM extreme x WHERE x.who < 3 OR ({v}) IS NOT NULL",
    "on": "SELECT COUNT(*) FROM extreme x JOIN extreme z ON x.who = z.who AND ({v}) IS NOT NULL",
    "side": "SELECT COUNT(*) FROM extreme x JOIN extreme z ON ({v}) = z.s",
    "other side": "SELECT COUNT(*) FROM extreme x JOIN extreme z ON z.i = ({v})",
    "projection": "SELECT COUNT(q) FROM (SELECT {v} AS q FROM extreme x) t",
    "inner projection": "SELECT COUNT(*) FROM (SELECT {v} AS q FROM extreme x) t WHERE q = '5'",
    "weight": "SELECT SUM({v}) FROM extreme x",
    "distinct weight": "SELECT SUM(DISTINCT {v}) FROM extreme x",
    "count": "SELECT COUNT({v}) FROM extreme x",
    "distinct": "SELECT COUNT(DISTINCT {v}) FROM extreme x",
    "pairs": "SELECT COUNT(DISTINCT {v}, x.b) FROM extreme x",
    "select distinct": "SELECT COUNT(*) FROM (SELECT DISTINCT {v} AS q FROM extreme x) t",
    "case condition": "SELECT SUM(CASE WHEN ({v}) IS NULL THEN 1 ELSE 2 END) FROM extreme x",
    "case branch": "SELECT COUNT(CASE WHEN x.who = 7 THEN {v} END) FROM extreme x",
    "case default": "SELECT COUNT(CASE WHEN x.who < 7 THEN NULL ELSE {v} END) FROM extreme x",
    "in": "SELECT COUNT(*) FROM extreme x WHERE x.i IN (3, {v})",
    "between": "SELECT COUNT(*) FROM extreme x WHERE x.i BETWEEN 0 AND {v}",
    "union": "SELECT COUNT(*) FROM (SELECT {v} AS q FROM extreme x UNION SELECT i FROM extreme) t",
    "union all": "SELECT COUNT(q) FROM (SELECT s AS q FROM extreme UNION ALL SELECT {v}"
    " FROM extreme x) t",
    "intersect": "SELECT COUNT(*) FROM (SELECT {v} AS q FROM extreme x INTERSECT SELECT {v}"
    " FROM extreme x) t",
    "exists": "SELECT COUNT(*) FROM extreme z WHERE EXISTS (SELECT 1 FROM extreme x WHERE"
    " x.who = z.who AND ({v}) IS NOT NULL)",
    "in select": "SELECT COUNT(*) FROM extreme z WHERE z.i IN (SELECT {v} FROM extreme x)",
    "beside exists": "SELECT COUNT(q) FROM (SELECT {v} AS q FROM extreme x) t WHERE EXISTS (SELECT"
    " 1 FROM extreme z WHERE z.i > 0)",
    "beside distinct": "SELECT COUNT(q) FROM (SELECT {v} AS q FROM extreme x UNION ALL"
    " SELECT DISTINCT {v} FROM extreme x) t",
    "with": "WITH c AS (SELECT {v} AS q FROM extreme x) SELECT COUNT(*) FROM c one, c other"
    " WHERE one.q = other.q",
    "group": "SELECT CASE WHEN ({v}) IS NULL THEN 1 ELSE 2 END AS k, COUNT(*) FROM extreme x"
    " GROUP BY k",
}
"""Every place of a statement where an expression may stand."""


def planted(dialect: str) -> list[dict[str, str | None]]:
    """Return plain rows of people, but for those of number 7, which hold all extremes."""
    tame = [{"who": str(who), **TAME} for who in range(6)]
    return [*tame, *({**row, "who": "7"} for row in rows(dialect))]


def outcome(database: Database, text: str) -> str:
    groups = {"k": [1, 2]} if "GROUP BY" in text else None
    try:
        for relation in relations_of(database, one_aggregate(text, groups=groups)):
            _ = relation.weights
    except QueryError as error:
        return f"refused: {error}"
    except TulleError as error:
        return f"{type(error).__name__}: {error}"
    return "answered"


def check_positions(database: Database, cases: Iterable[tuple[str, str]], least: float) -> None:
    """Check that a question fares alike with and without the one who has odd values."""
    left, answered, tried = database.without("participant", 7), 0, 0
    for position, expression in cases:
        tried += 1
        text = POSITIONS[position].format(v=expression.replace("y.", "x."))
        said = outcome(database, text)
        assert said == "answered" or said.startswith("refused"), text
        assert said == outcome(left, text), text
        answered += said == "answered"
    assert are_enough(answered, tried, least)


def rotated(dialect: str, step: int) -> list[tuple[str, str]]:
    """Return every step-th expression, each at the next position."""
    taken = check_taken(dialect)[::step]
    names = list(POSITIONS)
    return [(names[place % len(names)], text) for place, text in enumerate(taken)]


def test_a_question_fares_alike_in_duckdb() -> None:
    check_positions(in_duckdb(planted("duckdb")), rotated("duckdb", 9), 90)


def test_a_question_fares_alike_in_postgresql(postgres_url: str) -> None:
    database = in_postgres(postgres_url, planted("postgres"))
    check_positions(database, rotated("postgres", 17), 40)
    database.close()


@pytest.mark.filterwarnings("ignore")
def test_a_question_fares_alike_in_spark(spark_session: Any) -> None:
    check_positions(in_spark(spark_session, planted("spark")), rotated("spark", 150), 4)


# All expressions at all positions are hours: each run tries others, as far as its time goes.


@pytest.mark.slow
@pytest.mark.timed(8)
def test_questions_fare_alike_at_every_position_in_duckdb(drawn: Drawn) -> None:
    cases = list(product(POSITIONS, check_taken("duckdb")))
    check_positions(in_duckdb(planted("duckdb")), drawn.shuffled(cases), 0.2)


@pytest.mark.slow
@pytest.mark.timed(8)
def test_questions_fare_alike_at_every_position_in_postgresql(
    drawn: Drawn, postgres_url: str
) -> None:
    database = in_postgres(postgres_url, planted("postgres"))
    cases = list(product(POSITIONS, check_taken("postgres")))
    check_positions(database, drawn.shuffled(cases), 0.2)
    database.close()


@pytest.mark.slow
@pytest.mark.timed(4)
@pytest.mark.filterwarnings("ignore")
def test_questions_fare_alike_at_every_position_in_spark(drawn: Drawn, spark_session: Any) -> None:
    cases = list(product(POSITIONS, check_taken("spark")))
    check_positions(in_spark(spark_session, planted("spark")), drawn.shuffled(cases), 0.2)


ATTACKS = [
    "SELECT SUM(CASE WHEN s = 'x' AND w >= 4 THEN CAST('x' AS INTEGER) ELSE 0 END) FROM extreme",
    "SELECT SUM(CASE WHEN who = 7 THEN w * 9223372036854775807 ELSE 0 END) FROM extreme",
    "SELECT COUNT(*) FROM extreme WHERE who = 7 AND CAST(s || 'x' AS DATE) > DATE '2020-01-01'",
    "SELECT SUM(p * p * p * p * p * p * p * p * p * p * p * p) FROM extreme",
    "SELECT COUNT(*) FROM (SELECT NULL AS q, s FROM extreme) t WHERE q = s OR q < 5",
]
REFUSED = [
    ("SELECT COUNT(*) FROM extreme WHERE EXTRACT(HOUR FROM day) = 1", "has the fields YEAR"),
    ("SELECT COUNT(*) FROM extreme WHERE EXTRACT(NONSENSE FROM moment) = 1", "has the fields"),
    ("SELECT COUNT(*) FROM extreme WHERE DATE_TRUNC('nonsense', moment) > moment", "truncated to"),
    ("SELECT COUNT(*) FROM extreme WHERE moment + INTERVAL (i) DAY > moment", "INTERVAL '3' MONTH"),
    ("SELECT SUM(s) FROM extreme", "numbers are added"),
    ("SELECT SUM(DISTINCT s) FROM extreme", "numbers are added"),
    ("SELECT COUNT(*) FROM extreme WHERE day", "must be a boolean"),
    ("SELECT COUNT(*) FROM extreme WHERE day = 5", "CAST one of them"),
    ("SELECT COUNT(*) FROM extreme WHERE day < 'tomorrow'", "cannot be read as one"),
    ("SELECT COUNT(*) FROM extreme WHERE s + 1 > 2", "CAST them explicitly"),
    ("SELECT COUNT(*) FROM extreme WHERE w > 1" + 40 * "0", "at most 38 digits"),
    ("SELECT COUNT(*) FROM extreme WHERE f > 1e400", "beyond the range"),
]


def replayed(database: Database, text: str, tmp_path: Path, capfd: Any, caplog: Any) -> list[Any]:
    """Return all that shows of a question, on a database and on its neighbours, but the answer."""
    shows = []
    everyone = [database, *database.neighbours("participant")]
    for place, one in enumerate(everyone):
        caplog.clear()
        capfd.readouterr()
        account = tulle.Ledger(tmp_path / f"{abs(hash(text))}-{place}.ledger").open(
            "study", one, unit="participant", epsilon=2
        )
        try:
            account.ask(sql(text), epsilon=0.5)
            said = "answered"
        except TulleError as error:
            said = f"{type(error).__name__}: {error}"
        written = capfd.readouterr()
        logged = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
        shows.append((said, str(account.remaining), written.out, written.err, logged))
    return shows


def test_the_attacks_show_nothing_in_duckdb(tmp_path: Path, capfd: Any, caplog: Any) -> None:
    database = in_duckdb(planted("duckdb"))
    for text in ATTACKS:
        shows = replayed(database, text, tmp_path, capfd, caplog)
        assert len(shows) == 8
        assert all(show == shows[0] for show in shows)
        assert shows[0][0] == "answered"
    for text, words in REFUSED:
        shows = replayed(database, text, tmp_path, capfd, caplog)
        assert all(show == shows[0] for show in shows)
        assert words in shows[0][0], text
        assert "2" in shows[0][1]


def test_the_attacks_show_nothing_in_postgresql(
    tmp_path: Path, capfd: Any, caplog: Any, postgres_url: str
) -> None:
    database = in_postgres(postgres_url, planted("postgres"))
    for text in ATTACKS:
        shows = replayed(database, text, tmp_path, capfd, caplog)
        assert all(show == shows[0] for show in shows)
        assert shows[0][0] == "answered"
    for text, words in REFUSED:
        with pytest.raises(QueryError, match=words.replace("(", ".")):
            sql(text).rewrite(database.schema)
    database.close()


def test_a_condition_that_is_summed_counts_one() -> None:
    database = in_duckdb(planted("duckdb"))
    for text in ("SELECT SUM(b) FROM extreme", "SELECT SUM(i = 3) FROM extreme"):
        question = sql(text)
        assert relations_of(database, question)[0].total == question.truth(database) > 0
    with pytest.raises(QueryError, match="does not depend on the row"):
        sql("SELECT SUM(f(1)) FROM extreme", functions=["f"]).rewrite(database.schema)
    with pytest.raises(QueryError, match="only DuckDB can be kept"):
        sql("SELECT SUM(f(i)) FROM extreme", functions=["f"]).rewrite(schema("spark"))


def test_functions_of_ones_own_are_tried() -> None:
    database = in_duckdb(planted("duckdb"))
    connection = database._engine._connection  # type: ignore[attr-defined]
    connection.execute("CREATE MACRO risky(x) AS CAST(x AS INTEGER) + 1")
    connection.execute("CREATE MACRO twice(x) AS CAST(x AS INTEGER) + CAST(x AS INTEGER)")
    for text in (
        "SELECT SUM(risky(s) + risky(s)) FROM extreme",
        "SELECT COUNT(*) FROM extreme WHERE risky(s) + 1 > 0 AND risky(s) + 2 > 0",
        "SELECT COUNT(*) FROM extreme WHERE risky(w) = day",
        "SELECT COUNT(DISTINCT risky(s)) FROM extreme WHERE risky(s)",
        "SELECT SUM(twice(s)) FROM extreme WHERE risky(s) > 0",
        "SELECT SUM(twice(s) + risky(s) + risky(twice(s))) FROM extreme WHERE twice(s) > risky(s)",
        "SELECT COUNT(DISTINCT twice(s), risky(s)) FROM extreme",
    ):
        question = sql(text, functions=["risky", "twice"])
        relations_of(database, question)


def test_values_of_groups_are_of_the_kind_of_the_column() -> None:
    database = in_duckdb(planted("duckdb"))
    for name, good, bad in (
        ("i", [3, 4.5], ["3"]),
        ("s", ["12", None], [12]),
        ("day", ["2020-05-05"], [3]),
        ("b", [True, False], ["yes"]),
    ):
        text = f"SELECT {name}, COUNT(*) FROM extreme GROUP BY {name}"
        one_aggregate(text, groups={name: good}).rewrite(database.schema)
        with pytest.raises(QueryError, match="Give values of the same kind"):
            one_aggregate(text, groups={name: bad}).rewrite(database.schema)


def test_text_that_doubles_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sub-selects that put a text together with itself would fill the memory for some rows only."""
    monkeypatch.setattr(statements, "LONGEST_TEXT", 64)
    database = in_duckdb(planted("duckdb"))
    inner = "SELECT s || s AS q FROM extreme"
    for _ in range(8):
        inner = f"SELECT q || q AS q FROM ({inner}) t"
    text = f"SELECT SUM(LENGTH(q)) FROM ({inner}) t"
    weights = relations_of(database, sql(text))[0].weights
    assert max(weights) <= len(planted("duckdb")) * 2 * statements.LONGEST_TEXT


def test_keys_of_different_kinds_lead_to_owners() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE person AS SELECT range AS id FROM range(4)")
    connection.execute(
        "CREATE TABLE visit AS SELECT * FROM (VALUES ('1'), ('2'), ('x'), (NULL)) t(who)"
    )
    owners = {"person": "id", "visit": "who -> person[id].id"}
    database = Database.connect(connection, owners=owners)
    assert relations_of(database, sql("SELECT COUNT(*) FROM visit"))[0].total == 2


def test_weights_of_contributions_do_not_fail(postgres_url: str) -> None:
    for database in (
        in_duckdb(planted("duckdb")),
        in_postgres(postgres_url, planted("postgres")),
    ):
        for weight in ("w * w", "f * f", "g + g", "f / 1e300", "h * h", "CAST(s AS DOUBLE)", "e"):
            for one in (database, database.without("participant", 7)):
                held = tulle.Contributions.from_query(
                    one,
                    f"SELECT who, who, {weight} FROM extreme",
                    rows=10,
                    columns=10,
                    outside="drop",
                )
                for question in (tulle.weights(bound=3, total=7), tulle.weights(total=1e-55)):
                    tulle.release(held, question, unit="participant", epsilon=1.0)
        with pytest.raises(QueryError, match="not known to be a number"):
            tulle.Contributions.from_query(
                database, "SELECT who, who, s FROM extreme", rows=10, columns=10
            )
        database.close()


def test_every_day_of_four_centuries_is_read_in_postgresql(postgres_url: str) -> None:
    """The pattern lets through exactly the days that there are."""
    database = in_postgres(postgres_url, planted("postgres"))
    pattern = postgresql_conversions._PATTERNS["date"]
    days = (
        "SELECT to_char(y, 'FM0000') || '-' || to_char(m, 'FM00') || '-' || to_char(d, 'FM00') AS s"
        " FROM generate_series(1999, 2400) y, generate_series(0, 13) m, generate_series(0, 32) d"
    )
    read = f"SELECT COUNT(CAST(SUBSTRING(s, '^({pattern})$') AS DATE)) AS n FROM ({days}) t"
    there = "SELECT DATE '2401-01-01' - DATE '1999-01-01' AS n"
    found = [database._engine.fetch(text)["n"][0].as_py() for text in (read, there)]
    assert found[0] == found[1]
    database.close()
