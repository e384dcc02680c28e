"""Views and computed columns: nothing that the database itself computes makes a question fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests.sql.sql_extremes import SHAPES

import tulle
from tulle.core.errors import InputError, QueryError, TulleError
from tulle.sql.compile import names
from tulle.sql.data import Database
from tulle.sql.engines.duckdb import engine as duckdb_engine
from tulle.sql.expressions import kinds
from tulle.sql.expressions.total import ENTRIES
from tulle.sql.queries import relation_of, sql

FAILING = (
    "CAST({t}.txt AS INTEGER)",
    "{t}.big * 9223372036854775807",
    "CAST({t}.txt AS INTEGER) % {t}.big",
)
"""What fails on some rows of p, by itself."""

BODIES = {
    "projection": "SELECT p.id, {v} AS n FROM p",
    "where": "SELECT p.id, p.id AS n FROM p WHERE {v} > 3",
    "on": "SELECT p.id, place.k AS n FROM p JOIN place ON {v} = place.k",
    "sub-select": "SELECT q.id, q.n FROM (SELECT p.id, {v} AS n FROM p) AS q",
    "with": "WITH c AS (SELECT p.id, {v} AS n FROM p) SELECT c.id, c.n FROM c",
    "union all": "SELECT p.id, {v} AS n FROM p UNION ALL SELECT p.id, 1 AS n FROM p",
    "union": "SELECT p.id, 1 AS n FROM p UNION SELECT p.id, {v} AS n FROM p",
    "distinct": "SELECT DISTINCT p.id, {v} AS n FROM p",
    "exists": "SELECT r.id, 1 AS n FROM p AS r WHERE EXISTS (SELECT 1 FROM p WHERE p.id = r.id"
    " AND {v} > 1)",
    "case": "SELECT p.id, CASE WHEN {v} > 3 THEN 5 ELSE p.id END AS n FROM p",
    "aggregate": "SELECT p.id, MAX({v}) AS n FROM p GROUP BY p.id",
    "limit": "SELECT p.id, {v} AS n FROM p LIMIT 2",
    "outer join": "SELECT p.id, {v} AS n FROM p LEFT JOIN place ON p.id = place.k",
}
"""Every place of a view where an expression may stand; the last three are not supported."""

QUESTIONS = (
    "SELECT COUNT(*) FROM {view} WHERE n > 3",
    "SELECT SUM(n) FROM {view}",
    "SELECT COUNT(*) FROM p JOIN {view} ON p.id = {view}.id",
    "SELECT COUNT(*) FROM p WHERE EXISTS (SELECT 1 FROM {view} AS y WHERE y.id = p.id AND y.n > 0)",
)

WORLDS: tuple[list[tuple[int, str, int]], ...] = (
    [(1, "5", 1), (2, "6", 1), (3, "7", 1)],
    [(1, "5", 1), (2, "6", 1), (3, "x", 2)],
    [(1, "5", 1), (2, "6", 1)],
    [(1, "5", 1), (2, "6", 1), (3, "6", 0)],
)
"""Neighbours: the third person is harmless, makes everything fail, or is not there."""

OWNERS = {"p": "id"}


def statements(rows: Sequence[tuple[int, str, int]], text: str = "VARCHAR") -> list[str]:
    """Return what makes the tables, and a view for every body and failing expression."""
    listed = ", ".join(f"({i}, '{t}', {b})" for i, t, b in rows)
    made = [
        f"CREATE TABLE p (id INTEGER, txt {text}, big BIGINT)",
        f"INSERT INTO p VALUES {listed}",
        "CREATE TABLE place (k INTEGER)",
        "INSERT INTO place VALUES (5), (6), (7)",
    ]
    return made + [f"CREATE VIEW {name} AS {body}" for name, body in bodies().items()]


def bodies(count: int = len(FAILING)) -> dict[str, str]:
    found = {
        f"v{place}_{number}": body.format(v=failing.format(t="p"))
        for place, body in enumerate(BODIES.values())
        for number, failing in enumerate(FAILING[:count])
    }
    return {**found, "outer_view": "SELECT * FROM v0_0", "plain": "SELECT * FROM p"}


def outcome(database: Database, text: str) -> str:
    try:
        _ = relation_of(database, sql(text).bind(database)).weights
    except TulleError as error:
        return f"{type(error).__name__}: {error}"
    return "answered"


def outcomes(database: Database, step: int = 1, count: int = len(FAILING)) -> list[str]:
    """Return how every question about every view fares; every step-th of them."""
    cases = [q.format(view=view) for view in bodies(count) if view != "plain" for q in QUESTIONS]
    return [f"{case}: {outcome(database, case)}" for case in cases[::step]]


def check_alike(
    worlds: Sequence[Callable[[], Database]], step: int = 1, count: int = len(FAILING)
) -> None:
    found = []
    for opened in worlds:
        database = opened()
        found.append(outcomes(database, step, count))
        database.close()
    assert all(one == found[0] for one in found[1:])
    answered = [one for one in found[0] if one.endswith(": answered")]
    refused = [one for one in found[0] if "cannot be asked about" in one]
    assert len(answered) > len(refused) > 0
    assert len(answered) + len(refused) == len(found[0]), [
        one for one in found[0] if one not in answered and one not in refused
    ]


def in_duckdb(rows: Any) -> Database:
    connection = duckdb.connect()
    for statement in statements(rows):
        connection.execute(statement)
    return Database.connect(connection, owners=OWNERS, public=["place"])


def test_views_fare_alike_in_duckdb() -> None:
    check_alike([lambda rows=rows: in_duckdb(rows) for rows in WORLDS], step=9)  # type: ignore[misc]


@pytest.mark.slow
def test_views_fare_alike_at_every_position_in_duckdb() -> None:
    check_alike([lambda rows=rows: in_duckdb(rows) for rows in WORLDS])  # type: ignore[misc]


def test_a_view_that_is_read_as_such_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: views are tables, whose owners are declared."""
    monkeypatch.setattr(duckdb_engine, "_is_one_file", lambda text: True)

    def opened(rows: Any) -> Database:
        connection = duckdb.connect()
        for statement in statements(rows):
            connection.execute(statement)
        return Database.connect(connection, owners=OWNERS | dict.fromkeys(bodies(), "id"))

    good, bad = (outcomes(opened(rows), step=7) for rows in WORLDS[:2])
    assert sum("EngineError" in one for one in bad) > len(bad) // 3
    assert all("EngineError" not in one for one in good)


def shows(database: Database, text: str, folder: Path) -> tuple[str, str]:
    folder.mkdir()
    account = tulle.Ledger(folder / "ledger").open("a", database, unit="participant", epsilon=2)
    try:
        account.ask(sql(text), epsilon=0.5)
        said = "answered"
    except TulleError as error:
        said = f"{type(error).__name__}: {error}"
    return said, str(account.remaining)


def test_a_ledger_shows_the_same_for_neighbours(tmp_path: Path) -> None:
    for place, view in enumerate(("v0_0", "outer_view", "v10_0")):
        text = QUESTIONS[0].format(view=view)
        found = {
            shows(in_duckdb(rows), text, tmp_path / f"{place}{number}")
            for number, rows in enumerate(WORLDS[:2])
        }
        assert len(found) == 1
        assert found.pop()[1] == "epsilon = 1.5"


def test_a_view_is_the_question_about_its_select() -> None:
    database = in_duckdb(WORLDS[0])
    for view, body in bodies().items():
        if view.startswith(("v10", "v11", "v12", "outer")):
            continue
        question = f"SELECT COUNT(*) FROM {view} AS y JOIN p ON y.id = p.id"
        written = question.replace(f"{view} AS y", f"({body}) AS y")
        one, other = (sql(text).bind(database) for text in (question, written))
        assert sql(question).truth(database) == sql(written).truth(database)
        assert relation_of(database, one).total == relation_of(database, other).total
        assert one.canonical() == other.canonical() or "UNION" in body or "JOIN" in body
    again = database.facts(database.check_unit("participant"))
    bound = sql("SELECT SUM(n) FROM v0_0").bound_to(again)
    assert (
        bound.rewrite(database.schema).text
        == sql("SELECT SUM(n) FROM v0_0").bind(database).rewrite(database.schema).text
    )
    assert "v0_0" not in bound.rewrite(database.schema).text


def test_names_of_a_view_are_its_own() -> None:
    connection = duckdb.connect()
    for statement in (
        "CREATE TABLE p AS SELECT range AS id, range % 2 AS x FROM range(6)",
        "CREATE VIEW renamed(a, b) AS SELECT * FROM p",
        "CREATE VIEW unnamed AS SELECT id + 1, x FROM p",
        'CREATE VIEW "Mixed Name" AS SELECT id AS "The Id" FROM main.p',
        "CREATE VIEW several_joins AS SELECT r.a FROM renamed r"
        " JOIN (p JOIN renamed s ON p.id = s.a) ON r.b = p.x"
        " JOIN p AS t ON t.id = p.id AND t.id > 1",
        "CREATE SCHEMA far; CREATE TABLE far.q AS SELECT 1 AS id",
        "CREATE VIEW afar AS SELECT * FROM far.q",
        "CREATE VIEW made AS SELECT * FROM range(5) AS t(id)",
        "CREATE MACRO risky(x) AS CAST(x AS INTEGER)",
        "CREATE VIEW called AS SELECT risky(x) AS n, id FROM p",
        "CREATE TABLE nobody AS SELECT 1 AS id",
        "CREATE VIEW undeclared AS SELECT * FROM nobody",
        "CREATE MACRO several() AS TABLE SELECT * FROM p",
        "CREATE VIEW macros AS SELECT * FROM several()",
    ):
        connection.execute(statement)
    database = Database.connect(connection, owners=OWNERS)
    for text, count in (
        ("SELECT COUNT(*) FROM renamed WHERE a > 2 AND b = 1", 2),
        ('SELECT COUNT(*) FROM unnamed WHERE "(id + 1)" > 2', 4),
        ('SELECT COUNT(*) FROM "mixed name" m WHERE m."the id" = 3', 1),
        ("WITH renamed AS (SELECT id FROM p WHERE id = 1) SELECT COUNT(*) FROM RENAMED", 1),
        ("SELECT COUNT(*) FROM several_joins WHERE a = 3", 2),
        ("SELECT COUNT(*) FROM (WITH p AS (SELECT a FROM renamed) SELECT * FROM p) t", 6),
    ):
        assert sql(text).truth(database) == relation_of(database, sql(text)).total == count, text
    for name, words in (
        ("afar", "another schema"),
        ("made", "not a table"),
        ("called", "nothing is known about this function"),
        ("undeclared", "over nobody, which is neither owned nor public"),
        ("macros", "not a table"),
    ):
        with pytest.raises(QueryError, match=words):
            sql(f"SELECT COUNT(*) FROM {name}").bind(database)
    with pytest.raises(QueryError, match="WITH p hides a table that the view renamed reads"):
        sql("WITH p AS (SELECT 1 AS id) SELECT COUNT(*) FROM renamed").bind(database)
    for declared in (
        {"owners": {"p": "id", "renamed": "a"}},
        {"owners": OWNERS, "public": ["renamed"]},
        {"owners": {"p": "id", "nobody": "id -> renamed[a].a"}},
    ):
        with pytest.raises(InputError, match="is a view, and whose rows it shows follows from"):
            Database.connect(connection, **declared)  # type: ignore[arg-type]


def test_a_table_that_became_a_view_is_refused() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE p (id INTEGER, n INTEGER)")
    database = Database.connect(connection, owners=OWNERS)
    connection.execute("ALTER TABLE p RENAME TO raw")
    connection.execute("CREATE VIEW p AS SELECT id, n // (id - 3) AS n FROM raw")
    with pytest.raises(QueryError, match="Connect again"):
        sql("SELECT COUNT(*) FROM p").bind(database)


def test_computed_columns_are_compiled_in_duckdb() -> None:
    def opened(text: str) -> Database:
        connection = duckdb.connect()
        connection.execute(
            "CREATE TABLE p (id INTEGER, txt VARCHAR, n INTEGER GENERATED ALWAYS AS"
            " (CAST(txt AS INTEGER)) VIRTUAL, m AS (n + 1), note VARCHAR DEFAULT 'GENERATED')"
        )
        connection.execute("INSERT INTO p (id, txt) VALUES (1, '5'), (2, '6'), (3, '7')")
        # DuckDB looks at computed values when rows come in, not when they change.
        connection.execute("UPDATE p SET txt = ? WHERE id = 3", [text])
        connection.execute("CREATE VIEW v AS SELECT * FROM p WHERE m > 6")
        return Database.connect(connection, owners=OWNERS)

    good, bad = opened("7"), opened("x")
    with pytest.raises(duckdb.Error):
        bad._engine._connection.execute("SELECT SUM(n) FROM p").fetchall()  # type: ignore[attr-defined]
    for text, total, left in (
        ("SELECT SUM(n) FROM p", 18, 11),
        ("SELECT SUM(m) FROM p WHERE n > 5", 15, 7),
        ("SELECT COUNT(*) FROM v WHERE note = 'GENERATED'", 2, 1),
    ):
        assert relation_of(good, sql(text)).total == sql(text).truth(good) == total
        assert relation_of(bad, sql(text)).total == sql(text).truth(bad) == left
    with pytest.raises(InputError, match=r"p\.n is computed when it is read"):
        Database.connect(good._engine._connection, owners={"p": "n"})  # type: ignore[attr-defined]


def test_a_computed_column_that_the_engine_computes_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The twin: computed columns are columns like others."""
    monkeypatch.setattr(duckdb_engine, "_computed", lambda text: {})
    monkeypatch.setattr(names, "expand", lambda tree, schema: tree)
    connection = duckdb.connect()
    connection.execute("CREATE TABLE p (id INTEGER, txt VARCHAR, n AS (CAST(txt AS INTEGER)))")
    # It is refused even so: the catalogue says in a second place that the column is computed.
    with pytest.raises(InputError, match="columns that are computed when it is read"):
        Database.connect(connection, owners=OWNERS)


def test_macros_do_not_take_the_place_of_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE p AS SELECT range AS id, 'A' || range AS txt FROM range(5)")
    connection.execute("CREATE MACRO lower(x) AS CAST(x AS INTEGER)")
    connection.execute("CREATE MACRO own(x) AS x + 1")
    database = Database.connect(connection, owners=OWNERS)
    question = sql("SELECT COUNT(*) FROM p WHERE LOWER(txt) = 'a3'")
    assert relation_of(database, question).total == 1
    assert relation_of(database, sql("SELECT SUM(own(id)) FROM p", functions=["own"])).total == 15
    # The twin: a cursor that finds the database's own functions first.
    monkeypatch.setattr(duckdb_engine.DuckDB, "_cursor", lambda self: self._connection.cursor())
    with pytest.raises(TulleError):
        relation_of(database, question)


def test_frames_and_variables_do_not_come_in_through_views() -> None:
    frame = pa.table({"id": [1], "txt": ["x"]})
    connection = duckdb.connect()
    connection.execute("CREATE TABLE p AS SELECT 1 AS id")
    connection.register("registered", frame)
    connection.execute("CREATE VIEW through AS SELECT * FROM frame")
    connection.execute("CREATE TEMP VIEW passing AS SELECT * FROM p")
    database = Database.connect(connection, owners=OWNERS)
    for name in ("registered", "frame", "through", "passing"):
        with pytest.raises(QueryError):
            sql(f"SELECT COUNT(*) FROM {name}").bind(database)
        if name != "registered":  # which is copied when it is declared
            with pytest.raises(InputError):
                Database.connect(connection, owners={name: "id"})


def test_files_of_different_types_are_refused(tmp_path: Path) -> None:

    def write(rows: str, name: str) -> None:
        duckdb.connect().execute(f"COPY ({rows}) TO '{tmp_path / name}.parquet'")

    for value in ("7", "x"):
        write("SELECT 1 AS id, 5 AS n", "a")
        write(f"SELECT 2 AS id, '{value}' AS n", "b")
        with pytest.raises(InputError, match="same columns of the same types"):
            Database.connect("duckdb://", tables={"p": tmp_path / "*.parquet"}, owners={"p": "id"})
    write("SELECT 2 AS id, 6 AS n", "b")
    database = Database.connect(
        "duckdb://", tables={"p": tmp_path / "*.parquet"}, owners={"p": "id"}
    )
    assert relation_of(database, sql("SELECT SUM(n) FROM p")).total == 11
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW p AS SELECT * FROM '{tmp_path / 'a.parquet'}'")
    connection.execute(f"CREATE VIEW q AS SELECT * FROM read_parquet('{tmp_path / '*.parquet'}')")
    one = Database.connect(connection, owners={"p": "id"})
    assert relation_of(one, sql("SELECT SUM(n) FROM p")).total == 5
    with pytest.raises(InputError, match="is a view"):
        Database.connect(connection, owners={"q": "id"})


# PostgreSQL


def run(url: str, made: Sequence[str]) -> None:
    import adbc_driver_postgresql.dbapi as driver

    with driver.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        for statement in made:
            cursor.execute(statement)


def test_views_fare_alike_in_postgresql(postgres_url: str) -> None:
    def opened(rows: Any) -> Database:
        run(postgres_url, ["DROP SCHEMA public CASCADE", "CREATE SCHEMA public"])
        run(postgres_url, statements(rows))
        return Database.connect(postgres_url, owners=OWNERS, public=["place"])

    check_alike([lambda rows=rows: opened(rows) for rows in WORLDS[:2]], step=17)  # type: ignore[misc]


def test_what_postgresql_computes_is_refused(postgres_url: str) -> None:
    made = [
        "CREATE TABLE p (id INTEGER, txt TEXT, n INTEGER GENERATED ALWAYS AS (id + 1) STORED)",
        "INSERT INTO p VALUES (1, '5'), (2, '7')",
        "CREATE MATERIALIZED VIEW held AS SELECT id, CAST(txt AS INTEGER) AS n FROM p",
        "CREATE MATERIALIZED VIEW unfilled AS SELECT id FROM p WITH NO DATA",
        "CREATE FOREIGN DATA WRAPPER nothing",
        "CREATE SERVER afar FOREIGN DATA WRAPPER nothing",
        "CREATE FOREIGN TABLE remote (id INTEGER) SERVER afar",
        "CREATE TABLE parts (id INTEGER) PARTITION BY LIST (id)",
        "CREATE FOREIGN TABLE part PARTITION OF parts FOR VALUES IN (1) SERVER afar",
        "CREATE SCHEMA other",
        "CREATE TABLE other.q (id INTEGER)",
        "CREATE VIEW elsewhere AS SELECT * FROM other.q",
        "CREATE FUNCTION risky(x text) RETURNS integer LANGUAGE sql AS 'SELECT CAST(x AS INTEGER)'",
        "CREATE VIEW called AS SELECT id, risky(txt) AS n FROM p",
        "CREATE VIEW qualified AS SELECT public.p.id FROM public.p",
        'CREATE VIEW "Mixed" AS SELECT id AS "The Id" FROM p',
        "CREATE TABLE guarded (id INTEGER, txt TEXT)",
        "ALTER TABLE guarded ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY few ON guarded USING (CAST(txt AS INTEGER) > 3)",
        "DROP ROLE IF EXISTS reader",
        "CREATE ROLE reader LOGIN",
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader",
    ]
    run(postgres_url, made)
    database = Database.connect(postgres_url, owners={"p": "id", "held": "id", "guarded": "id"})
    for text, total in (
        ("SELECT SUM(n) FROM p", 5),
        ("SELECT SUM(n) FROM held", 12),
        ("SELECT COUNT(*) FROM qualified", 2),
        ('SELECT COUNT(*) FROM "Mixed" WHERE "The Id" > 1', 1),
    ):
        assert relation_of(database, sql(text, dialect="postgres")).total == total
    for name, words in (
        ("elsewhere", "tables of another schema"),
        ("called", "risky.* is not among the expressions"),
        ("unfilled", "REFRESH MATERIALIZED VIEW"),
    ):
        with pytest.raises(QueryError, match=words):
            sql(f"SELECT COUNT(*) FROM {name}").bind(database)
    for name in ("remote", "parts"):
        with pytest.raises(InputError, match="foreign table"):
            Database.connect(postgres_url, owners={name: "id"})
    reader = postgres_url.replace("postgres:@", "reader:@")
    assert reader != postgres_url
    with pytest.raises(InputError, match="row-level policies"):
        Database.connect(reader, owners={"guarded": "id"})
    Database.connect(reader, owners={"p": "id"}).close()


# Spark


def spark_frames(session: Any, rows: Any) -> None:
    frame = session.createDataFrame([list(row) for row in rows], "id INT, txt STRING, big BIGINT")
    frame.createOrReplaceTempView("p")
    session.sql("SELECT * FROM VALUES (5), (6), (7) AS t(k)").createOrReplaceTempView("place")
    for name, body in bodies(1).items():
        session.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {body}")


@pytest.mark.filterwarnings("ignore")
def test_views_fare_alike_in_spark(spark_session: Any, tmp_path: Path) -> None:
    def opened(rows: Any) -> Database:
        spark_frames(spark_session, rows)
        return Database.connect(spark_session, owners=OWNERS, public=["place"])

    try:
        check_alike([lambda rows=rows: opened(rows) for rows in WORLDS[:2]], step=15, count=1)  # type: ignore[misc]
    finally:
        for name in (*bodies(1), "p", "place"):
            spark_session.catalog.dropTempView(name)


@pytest.mark.filterwarnings("ignore")
def test_frames_that_compute_are_refused_in_spark(spark_session: Any, tmp_path: Path) -> None:
    made = []
    (tmp_path / "rows.csv").write_text("1,5\n2,x\n")

    def register(frame: Any, name: str) -> None:
        frame.createOrReplaceTempView(name)
        made.append(name)

    def read(name: str, value: Any) -> Any:
        reader = spark_session.read.schema("id INT, n INT").option(name, value)
        return reader.csv(str(tmp_path))

    try:
        for text in ("7", "x"):
            rows = spark_session.createDataFrame([(1, "5"), (2, text)], "id INT, txt STRING")
            register(rows, "stored")
            register(rows.selectExpr("id", "TRY_CAST(txt AS INT) AS n"), "tried")
            register(rows.selectExpr("id", "CAST(txt AS INT) AS n"), "cast_one")
            register(rows.filter("CAST(txt AS INT) > 3"), "filtered")
            register(rows.join(rows.selectExpr("id AS j"), on=rows.id == 1), "joined")
            register(rows.groupBy("id").count(), "grouped")
            register(rows.mapInPandas(lambda parts: parts, "id INT, txt STRING"), "mapped")
            register(read("mode", "FAILFAST"), "strict")
            register(read("maxCharsPerColumn", 1), "short")
            register(read("mode", "PERMISSIVE"), "lenient")
            database = Database.connect(
                spark_session, owners=dict.fromkeys(("stored", "tried", "lenient"), "id")
            )
            assert relation_of(database, sql("SELECT COUNT(*) FROM stored")).total == 2
            for name in ("cast_one", "filtered", "joined", "grouped", "mapped", "strict", "short"):
                with pytest.raises(QueryError, match="computes something when it is read"):
                    sql(f"SELECT COUNT(*) FROM {name}").bind(database)
                with pytest.raises(InputError, match="computes something when it is read"):
                    Database.connect(spark_session, owners={name: "id"})
            # Nor does another frame take the place of the one that was connected to.
            lazy = spark_session.sparkContext.parallelize([(1, "5"), (2, text)])
            register(
                spark_session.createDataFrame(
                    lazy.map(lambda row: (int(row[1]), row[1])), "id INT, txt STRING"
                ),
                "stored",
            )
            with pytest.raises(QueryError, match="Connect again"):
                sql("SELECT COUNT(*) FROM stored").bind(database)
            database.close()
    finally:
        for name in made:
            spark_session.catalog.dropTempView(name)


@pytest.mark.filterwarnings("ignore")
def test_what_a_program_makes_is_read_once_in_spark(spark_session: Any) -> None:
    """A program may fail, or give other rows, whenever it runs: it runs when connecting."""
    times = spark_session.sparkContext.accumulator(0)

    def read(row: tuple[int, str]) -> tuple[int, int]:
        times.add(1)
        return row[0], int(row[1])

    def made(text: str) -> None:
        rows = spark_session.sparkContext.parallelize([(1, "5"), (2, text)], 1)
        frame = spark_session.createDataFrame(rows.map(read), "id INT, n INT")
        frame.createOrReplaceTempView("p")

    try:
        made("7")
        database = Database.connect(spark_session, owners=OWNERS)
        before = times.value
        assert relation_of(database, sql("SELECT SUM(n) FROM p")).total == 12
        assert times.value == before == 2
        database.close()
        made("hidden_12")
        with pytest.raises(InputError, match="cannot read it to its end") as caught:
            Database.connect(spark_session, owners=OWNERS)
        assert "hidden" not in str(caught.value)
    finally:
        spark_session.catalog.dropTempView("p")


def written_over(columns: dict[str, str]) -> Iterator[str]:
    """Yield every supported function, and what takes values of any kind, over some columns."""
    for entry in ENTRIES:
        takes = [t for t in entry.takes if kinds.INTERVAL not in t][: entry.written.count("{}")]
        chosen = [next((c for k, c in columns.items() if k in t), None) for t in takes]
        if None not in chosen:
            yield entry.written.format(*chosen)
    for shape in SHAPES:
        for column in ("a", "s"):
            yield shape.replace("x.b", "(a > 1)").format(column, column, column)
    yield from ("COUNT(*) OVER (PARTITION BY who)", "d - INTERVAL '3' MONTH", "d + INTERVAL 1 DAY")


@pytest.mark.parametrize(
    "written",
    ["SUM(a)", "COUNT(*)", "COUNT(*) OVER (PARTITION BY who)", "d + INTERVAL 1 DAY",
     "d - INTERVAL '3' MONTH", "(a, who) IN ((1, 2), (3, 4))"],
)  # fmt: skip
def test_views_are_read_in_the_words_in_which_they_are_stored(written: str) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (who INT, a INT, d DATE)")
    group = " GROUP BY who" if written in ("COUNT(*)", "SUM(a)") else ""
    connection.execute(f"CREATE VIEW v AS SELECT who, {written} AS x FROM t{group}")
    database = tulle.Database.connect(connection, owners={"t": "who"})
    assert sql("SELECT COUNT(x) FROM v").objection(database) is None


@pytest.mark.slow
def test_whatever_is_supported_in_a_sub_select_is_supported_in_a_view() -> None:
    """DuckDB stores a view in words of its own: COUNT_STAR(), TO_DAYS(...), "row"(...)."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (who INT, a INT, b DOUBLE, s TEXT, d DATE, m TIMESTAMP)")
    columns = {kinds.WHOLE: "a", kinds.DOUBLE: "b", kinds.TEXT: "s", kinds.DATE: "d"}
    columns |= {kinds.TIMESTAMP: "m", kinds.BOOLEAN: "(a > 1)"}
    made = {}
    for place, written in enumerate(dict.fromkeys(written_over(columns))):
        try:
            connection.execute(f"CREATE VIEW v{place} AS SELECT who, {written} AS x FROM t")
        except duckdb.Error:
            continue  # the engine itself does not know it
        made[f"v{place}"] = written
    connection.execute(
        "CREATE VIEW grouped AS SELECT who, COUNT(*) AS x FROM t GROUP BY who HAVING COUNT(*) > 1"
    )
    database = tulle.Database.connect(connection, owners={"t": "who"})
    assert sql("SELECT SUM(x) FROM grouped").objection(database) is None

    def is_refused(text: str) -> bool:
        try:
            sql(text).rewrite(database.schema)  # type: ignore[union-attr]
        except QueryError:
            return True
        return False

    for view, written in made.items():
        inner = f"SELECT COUNT(x) FROM (SELECT who, {written} AS x FROM t) AS u"
        assert is_refused(inner) == is_refused(f"SELECT COUNT(x) FROM {view}"), written
    assert len(made) > 150
