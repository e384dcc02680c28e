"""A declared limit of memory: what passes it stops with one text, after the debit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import tulle
from tulle.core.errors import InputError
from tulle.sql.data import Database
from tulle.sql.engines.base import EngineError, Size
from tulle.sql.queries import sql

duckdb = pytest.importorskip("duckdb", reason="the extra tulle[sql] is not installed")

PAIRS = "SELECT COUNT(*) FROM p x JOIN p y ON x.k = y.k"
"""As many tuples as there are pairs of people in a place."""


def shows(database: Database, folder: Path, text: str = PAIRS) -> tuple[str, str]:
    folder.mkdir()
    account = tulle.Ledger(folder / "ledger").open("a", database, unit="participant", epsilon=2)
    with pytest.raises(EngineError) as caught:
        account.ask(sql(text), epsilon=0.5)
    return str(caught.value), str(account.remaining)


def test_sizes_are_read() -> None:
    assert Size.read("4GB") == Size(4 * 1024**2, 40 * 1024**2)
    assert Size.read(" 12 MB ").on_disk == 10 * 12 * 1024
    assert Size.read("12MB + 1GB") == Size(12 * 1024, 1024**2)
    for text in (
        "lots",
        "4",
        "0GB",
        "1GB + 0GB",
        "1GB +",
        "1GB + 2GB + 3GB",
        "-1GB",
        "4 gigabytes",
        "1e3GB",
    ):
        with pytest.raises(InputError, match="memory must be a size"):
            Size.read(text)
    with pytest.raises(InputError, match="What is handed over keeps its own limits"):
        Database.connect(duckdb.connect(), owners={}, memory="1GB")


def test_postgresql_keeps_to_its_limit(postgres_url: str, tmp_path: Path) -> None:
    import adbc_driver_postgresql.dbapi as driver

    def run(made: Sequence[str]) -> None:
        with driver.connect(postgres_url, autocommit=True) as link, link.cursor() as cursor:
            for statement in made:
                cursor.execute(statement)

    run(["CREATE TABLE p (id INTEGER, k INTEGER)"])
    found = []
    for place, people in enumerate((900, 1300)):
        run(
            [
                "TRUNCATE p",
                f"INSERT INTO p SELECT i, 1 FROM generate_series(1, {people}) AS i",
            ]
        )
        small = Database.connect(postgres_url, owners={"p": "id"}, memory="512KB")
        found.append(shows(small, tmp_path / str(place)))
        small.close()
    assert found[0] == found[1]
    assert found[0][1] == "epsilon = 1.5"
    wide = Database.connect(postgres_url, owners={"p": "id"}, memory="64MB")
    assert sql(PAIRS).truth(wide) == 1300**2
    wide.close()
    run(["DROP ROLE IF EXISTS limited", "CREATE ROLE limited LOGIN"])
    run(["GRANT SELECT ON p TO limited"])
    role = postgres_url.replace("postgres:@", "limited:@")
    with pytest.raises(InputError, match="GRANT SET ON PARAMETER temp_file_limit"):
        Database.connect(role, owners={"p": "id"}, memory="1GB")
    run(["GRANT SET ON PARAMETER temp_file_limit TO limited"])
    Database.connect(role, owners={"p": "id"}, memory="1GB").close()
    run(["DROP OWNED BY limited", "DROP ROLE limited"])


@pytest.mark.filterwarnings("ignore")
def test_spark_keeps_to_its_limit(spark_session: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"spark\.driver\.maxResultSize"):
        Database.connect("local[2]", owners={}, memory="1GB")
    # What memory= sets where a session is started, on the one that the tests share.
    settings = spark_session.sparkContext._jsc.sc().conf()
    settings.set("spark.driver.maxResultSize", "1k")
    found = []
    try:
        for place, people in enumerate((60, 80)):
            frame = spark_session.range(people).selectExpr("id", "1 AS k")
            frame.createOrReplaceTempView("p")
            database = Database.connect(spark_session, owners={"p": "id"})
            found.append(shows(database, tmp_path / str(place)))
            database.close()
    finally:
        settings.remove("spark.driver.maxResultSize")
        spark_session.catalog.dropTempView("p")
    assert found[0] == found[1]
    assert found[0][1] == "epsilon = 1.5"
