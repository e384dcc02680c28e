"""Columns of one name, aggregates of nothing, and errors that must not cost anything."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from tests.drawn import Drawn
from tests.sql.sql_questions import QUESTIONS
from tests.sql.sql_worlds import OWNERS as WORLD_OWNERS
from tests.sql.sql_worlds import (
    PUBLIC,
    connect,
    everyone,
    load,
    random_world,
    summary,
    take_away,
    taking_part,
    without,
)

import tulle
from tulle.core.errors import QueryError, TulleError
from tulle.sql.compile.gather import gather
from tulle.sql.compile.names import Named
from tulle.sql.data import Database
from tulle.sql.queries import SqlQuery, gather_tuples, relation_of, sql

TABLES = {
    "person": ["id", "age"],
    "edge": ["a", "b", "w"],
    "item": ["okey", "sku", "qty"],
    "visit": ["pid", "sid", "minutes"],
}


def twins(seed: int) -> str:
    """Write a question over sub-selects in which several columns have one name."""
    draw = random.Random(seed)

    def side(width: int) -> str:
        names = [draw.choice(list(TABLES)) for _ in range(2)]
        columns = [f"{alias}.{c}" for alias, t in zip("xy", names, strict=True) for c in TABLES[t]]
        chosen = [draw.choice(columns) for _ in range(width)]
        if draw.random() < 0.5:
            chosen[-1] = chosen[0]
        if draw.random() < 0.5:
            chosen = [f"{c} AS k" for c in chosen]
        distinct = draw.choice(["", "DISTINCT "])
        on = f"{draw.choice(columns)} <= {draw.choice(columns)}"
        return f"SELECT {distinct}{', '.join(chosen)} FROM {names[0]} x, {names[1]} y WHERE {on}"

    def star() -> str:
        names = [draw.choice(list(TABLES)) for _ in range(2)]
        return f"SELECT DISTINCT * FROM {names[0]} x JOIN {names[1]} y ON {on(names)}"

    def on(names: list[str]) -> str:
        return f"x.{draw.choice(TABLES[names[0]])} = y.{draw.choice(TABLES[names[1]])}"

    if draw.random() < 0.2:
        rows = star()
    else:
        width = draw.choice([2, 2, 3])
        words = ["UNION", "UNION ALL", "INTERSECT", None]
        rows = side(width)
        if (word := draw.choice(words)) is not None:
            rows += f" {word} {side(width)}"
    if draw.random() < 0.3:
        return f"SELECT COUNT(*) FROM ({rows}) t, city"
    if draw.random() < 0.3:
        return f"WITH v AS ({rows}) SELECT COUNT(*) FROM v"
    return f"SELECT COUNT(*) FROM ({rows}) t"


def differences(question: SqlQuery, seed: int) -> list[str]:
    """Compare a relation with the engine's own answer, and with rows that are really deleted."""
    rows = random_world(seed)
    database = connect(rows)
    plain = load(duckdb.connect(), taking_part(rows))
    found = []
    rewritten = question.rewrite(database.schema)
    gathered = gather(rewritten, database._engine.fetch(rewritten.text))
    truth = plain.execute(question.text).fetchone()[0]
    if not np.isclose(gathered.relations[0].total, truth):
        found.append(f"{gathered.relations[0].total} instead of {truth}")
    if question.truth(database) != truth:
        found.append(f"truth {question.truth(database)} instead of {truth}")
    for who in sorted(everyone(rows))[:3]:
        left = gather(rewritten, connect(take_away(rows, who))._engine.fetch(rewritten.text))
        if [summary(r, left.names) for r in left.relations] != without(gathered, who):
            found.append(f"{who} leaves")
    return found


def test_columns_of_one_name_are_columns_of_their_own() -> None:
    for seed in range(25):
        text = twins(seed)
        assert differences(sql(text), 1 + seed % 2) == [], text


@pytest.mark.slow
@pytest.mark.timed(2)
def test_columns_of_one_name_in_many_questions(drawn: Drawn) -> None:
    for seed in drawn.seeds():
        text = twins(seed)
        assert differences(sql(text), seed) == [], text


def test_columns_that_share_a_name_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: the second column keeps the name of the first."""
    monkeypatch.setattr(Named, "_name_apart", lambda self: None)
    broken = 0
    for seed in range(25):
        try:
            broken += bool(differences(sql(twins(seed)), 1))
        except TulleError:
            broken += 1
    assert broken


@pytest.mark.parametrize(
    "text",
    [
        "SELECT SUM(a) FROM (SELECT x.a, y.a FROM edge x, edge y) t",
        "SELECT COUNT(*) FROM (SELECT a, b AS a FROM edge) t WHERE a > 1",
        "SELECT COUNT(*) FROM (SELECT DISTINCT * FROM (SELECT x.a, y.a FROM edge x, edge y) t) u",
        "SELECT COUNT(*) FROM (SELECT a, a FROM edge UNION SELECT a, b FROM edge) t"
        " JOIN person ON id = t.a",
        "WITH v AS (SELECT a, b AS A FROM edge) SELECT COUNT(DISTINCT v.a) FROM v",
        "SELECT COUNT(*) FROM person p WHERE EXISTS (SELECT 1 FROM (SELECT a, b AS a FROM edge) t"
        " WHERE t.a = p.id)",
    ],
)
def test_a_name_that_two_columns_have_cannot_be_used(text: str) -> None:
    with pytest.raises(QueryError, match="ambiguous"):
        relation_of(connect(random_world(1)), sql(text))


def test_sums_of_nothing_and_counts_of_nothing() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE town (x INTEGER); CREATE TABLE p (id INTEGER)")
    database = Database.connect(connection, owners={"p": "id"}, public=["town"])
    for text in (
        "SELECT SUM(x) FROM town",
        "SELECT SUM(DISTINCT x) FROM town",
        "SELECT COUNT(x) FROM town",
        "SELECT SUM(x) FROM town, p",
        "SELECT SUM(x) FROM town WHERE x IN (SELECT id FROM p)",
    ):
        assert relation_of(database, sql(text)).total == sql(text).truth(database) == 0
        assert tulle.release(database, sql(text), unit="participant", epsilon=1).value is not None
    grouped = sql("SELECT x, SUM(x) FROM town GROUP BY x", groups={"x": [1, 2]})
    value = tulle.release(database, grouped, unit="participant", epsilon=1).value
    assert len(value) == 2
    for text in ("SELECT COUNT() FROM p", "SELECT SUM() FROM p"):
        with pytest.raises(QueryError):
            sql(text)


# --- a refusal costs nothing ----------------------------------------------------------------------

WRONG = [
    "SELECT COUNT(*) FROM nowhere",
    "SELECT COUNT(nothing) FROM edge",
    "SELECT COUNT(e.nothing) FROM edge e",
    "SELECT COUNT(x.a) FROM edge e",
    "SELECT SUM(city) FROM person",
    "SELECT SUM(DISTINCT city) FROM person",
    "SELECT COUNT(*) FROM person WHERE 'text' > 0",
    "SELECT SUM(city + 1) FROM person",
    "SELECT SUM(city * age) FROM person",
    "SELECT COUNT(*) FROM person WHERE city > age",
    "SELECT COUNT(*) FROM person WHERE city BETWEEN 1 AND 3",
    "SELECT COUNT(*) FROM person WHERE age LIKE 'a%'",
    "SELECT COUNT(*) FROM person WHERE age",
    "SELECT COUNT(*) FROM person WHERE city AND age = 1",
    "SELECT COUNT(*) FROM person JOIN orders ON city = cust",
    "SELECT COUNT(*) FROM person WHERE EXTRACT(YEAR FROM age) = 3",
    "SELECT COUNT(*) FROM person WHERE DATE_TRUNC('month', city) = 3",
    "SELECT COUNT(*) FROM person WHERE LOWER(age) = 'x'",
    "SELECT COUNT(*) FROM person WHERE ABS(city) = 1",
    "SELECT COUNT(*) FROM person WHERE city IN (1, 2)",
    "SELECT COUNT(*) FROM person WHERE id IN (SELECT note FROM orders)",
    "SELECT COUNT(*) FROM person WHERE CASE WHEN age > 1 THEN city ELSE age END = 1",
    "SELECT COUNT(*) FROM (SELECT city FROM person UNION SELECT age FROM person) t WHERE city > 3",
    "SELECT SUM(x) FROM (SELECT city AS x FROM person UNION ALL SELECT age FROM person) t",
    "SELECT COUNT(*) FROM person WHERE COALESCE(city, age) > 3",
    "SELECT COUNT(*) FROM person WHERE GREATEST(city, age) > 3",
    "SELECT COUNT(*) FROM person WHERE age || 1 > 3",
    "SELECT COUNT(*) FROM person WHERE CAST(age AS nonsense) = 1",
    "SELECT COUNT(*) FROM person WHERE my_function(age)",
    "SELECT COUNT(*) FROM person WHERE age + INTERVAL '1' day > 3",
]


def muddled(seed: int) -> str:
    """Take a question that is right, and put names of other columns and tables into it."""
    draw = random.Random(seed)
    words = draw.choice(QUESTIONS).split(" ")
    names = ["city", "note", "name", "w", "price", "person", "edge", "nothing", "x.a"]
    for _ in range(draw.choice([1, 1, 2])):
        place = draw.randrange(1, len(words))
        words[place] = draw.choice(names)
    return " ".join(words)


def charged_for_nothing(database: Database, texts: Iterable[str], folder: Path) -> list[str]:
    """Return the questions that failed and cost something all the same."""
    study = tulle.Ledger(folder / "study.ledger").open(
        "study", database, unit="participant", epsilon=10_000
    )
    wrong: list[str] = []
    tried = refused = 0
    for text in texts:
        tried += 1
        try:
            question = sql(text, functions=["my_function"])
        except TulleError:
            continue
        before = study.remaining.epsilon
        try:
            study.ask(question, epsilon=0.01, again=True)
        except Exception:  # noqa: BLE001 - whatever it is, it must not cost
            refused += 1
            if study.remaining.epsilon != before:
                wrong.append(text)
    assert refused > tried / 6
    return wrong


def test_what_fails_is_not_charged(tmp_path: Path) -> None:
    texts = [*WRONG, *(muddled(seed) for seed in range(60))]
    assert charged_for_nothing(connect(random_world(1)), texts, tmp_path) == []


@pytest.mark.slow
@pytest.mark.timed(2)
def test_what_fails_is_not_charged_in_many_questions(tmp_path: Path, drawn: Drawn) -> None:
    texts = (muddled(seed) for seed in drawn.seeds())
    assert charged_for_nothing(connect(random_world(1)), texts, tmp_path) == []


def test_a_question_without_an_objection_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: nothing is asked of the engine before the price is paid."""
    monkeypatch.setattr(SqlQuery, "bind", lambda self, public, facts: self.bound_to(facts))
    assert charged_for_nothing(connect(random_world(1)), WRONG, tmp_path) != []


def test_what_fails_is_not_charged_on_postgresql(postgres_url: str, tmp_path: Path) -> None:
    from tests.sql.engines.test_engines import fill_postgresql

    fill_postgresql(postgres_url, random_world(1))
    database = Database.connect(postgres_url, owners=WORLD_OWNERS, public=PUBLIC)
    texts = [*WRONG, *(muddled(seed) for seed in range(40))]
    assert charged_for_nothing(database, texts, tmp_path) == []
    database.close()


@pytest.mark.filterwarnings("ignore")
def test_what_fails_is_not_charged_on_spark(spark_session: Any, tmp_path: Path) -> None:
    embedded = connect(random_world(1))
    for table in ("person", "edge", "orders"):
        arrow = embedded._engine.read(f"SELECT * FROM {table}")
        spark_session.createDataFrame(arrow).createOrReplaceTempView(table)
    owners = {table: WORLD_OWNERS[table] for table in ("person", "edge", "orders")}
    database = Database.connect(spark_session, owners=owners)
    try:
        assert charged_for_nothing(database, WRONG, tmp_path) == []
    finally:
        database.close()
        for table in owners:
            spark_session.catalog.dropTempView(table)


def test_the_command_line_does_not_charge_for_a_wrong_type(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from tulle.cli.main import app

    file = tmp_path / "p.csv"
    file.write_text("id,city\n1,ams\n2,ber\n")
    book = str(tmp_path / "study.ledger")
    said = CliRunner().invoke(
        app,
        [
            *("sql", "ask", "duckdb://", "SELECT SUM(city) FROM p", "--tables", f"p={file}"),
            *("--owners", "p=id", "--unit", "participant", "--epsilon", "1"),
            *("--ledger", book, "--budget", "2", "--account", "study"),
        ],
    )
    assert said.exit_code == 2
    # The account is not even opened.
    assert tulle.Ledger(book).accounts() == []


def test_the_refusal_of_an_engine_is_the_same_on_neighbours() -> None:
    database = connect(random_world(1))
    for text in ("SELECT SUM(city) FROM person", "SELECT SUM(nothing) FROM person"):
        said = {sql(text).objection(one) for one in (database, *database.neighbours("participant"))}
        assert len(said) == 1
        assert said != {None}
        with pytest.raises(QueryError):
            gather_tuples(database, sql(text))
