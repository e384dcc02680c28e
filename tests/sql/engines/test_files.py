"""Paths and heads of files say which columns and types there are, not which files there are."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest

import tulle
from tulle.core.errors import InputError, TulleError
from tulle.sql.engines.duckdb.engine import DuckDB
from tulle.sql.engines.files import partitioned_from

FOLDERS = ("k=1", "k=2", "k=ann", "k=2024-01-01", "k=9" + "9" * 30, "k=", "k=%41", "j=1", "old")
"""Folders as somebody's rows may be in, each of which tells DuckDB of another type or of none."""

PATTERNS = ("*/*.parquet", "k=*/*.parquet", "**/*.parquet", "[jk]=*/*.parquet", "k=1/a.parquet", "")
QUESTIONS = (
    *("SELECT COUNT(*) FROM t", "SELECT COUNT(*) FROM t WHERE k = '1'"),
    *("SELECT SUM(k) FROM t", "SELECT COUNT(*) FROM t WHERE k > DATE '2020-01-01'"),
)


def write(folder: Path, names: list[str]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for who, name in enumerate(names):
        (folder / name).mkdir(parents=True)
        duckdb.sql(f"SELECT {who} AS who, 2 AS x").write_parquet(f"{folder / name}/a.parquet")


def shown(folder: Path, pattern: str) -> list[str]:
    """Return the columns, and what questions are refused with."""
    path = folder / pattern if pattern else folder
    try:
        database = tulle.Database.connect("duckdb://", tables={"t": path}, owners={"t": "who"})
    except InputError as error:
        return [str(error)]
    found = [str(database.schema.tables)]
    for text in QUESTIONS:
        try:
            tulle.release(database, tulle.sql(text), unit="participant", epsilon=1.0)
            found.append("answered")
        except TulleError as error:
            found.append(str(error))
    return found


def differences(tmp_path: Path, number: int) -> list[Any]:
    """Return random sets of folders of which one can go and be seen to have gone."""
    draw = random.Random(7)
    found = []
    folder = tmp_path / "t.parquet"
    for _ in range(number):
        pattern = draw.choice(PATTERNS)
        matched = [name for name in FOLDERS if pattern[:2] != "k=" or name[:2] == "k="]
        # One stays: a table without a file is none.
        names = ["k=1", *draw.sample(matched[1:], draw.choice([1, 1, 2]))]
        write(folder, names)
        whole = shown(folder, pattern)
        for name in names[1:]:
            write(folder, [one for one in names if one != name])
            if shown(folder, pattern) != whole:
                found.append((pattern, names, name))
    return found


def test_no_folder_shows_in_the_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert differences(tmp_path, 30) == []

    def guess(self: Any, name: str, path: Path, types: Any) -> None:
        self._connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{path}')")
        self._files.add(name)

    # A broken version that lets the engine look which folders there are.
    monkeypatch.setattr(DuckDB, "_attach", guess)
    assert len(differences(tmp_path, 10)) > 3


def test_folders_that_the_path_names_are_columns_of_text(tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    write(folder, ["k=1/j=5", "k=7/j=x"])
    tables = {"t": folder / "k=*/j=*/*.parquet"}
    database = tulle.Database.connect("duckdb://", tables=tables, owners={"t": "k"})
    assert dict(database.schema.tables["t"]) | {"k": "VARCHAR", "j": "VARCHAR"} == dict(
        database.schema.tables["t"]
    )
    assert database.participants() == [("participant", "1"), ("participant", "7")]
    assert tulle.sql("SELECT COUNT(*) FROM t WHERE CAST(j AS INT) = 5").truth(database) == 1
    with pytest.raises(InputError, match="Name the column of every folder"):
        tulle.Database.connect(
            "duckdb://", tables={"t": folder / "k=*/*/*.parquet"}, owners={"t": "who"}
        )


def test_where_folders_are_columns() -> None:
    assert partitioned_from("t", "rows/k=*/j=*/*.parquet") == "rows"
    assert partitioned_from("t", "k=1/a.parquet") == "."
    assert partitioned_from("t", "rows/*/a=b.parquet") is None


def test_a_folder_in_a_view_is_not_one_file(tmp_path: Path) -> None:
    write(tmp_path / "t.parquet", ["k=1", "k=ann"])
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW t AS SELECT * FROM read_parquet('{tmp_path}/t.parquet')")
    with pytest.raises(InputError, match="is a view"):
        tulle.Database.connect(connection, owners={"t": "who"})


def test_csv_files_have_one_head(tmp_path: Path) -> None:
    """The first of several files named the columns of all, and it may be somebody's alone."""
    (tmp_path / "b.csv").write_text("who,x\n1,2\n")
    (tmp_path / "c.csv").write_text("who,x\n2,2\n")

    def connect() -> Any:
        return tulle.Database.connect(
            "duckdb://", tables={"t": tmp_path / "*.csv"}, owners={"t": "who"}
        )

    assert tulle.sql("SELECT COUNT(*) FROM t").truth(connect()) == 2
    (tmp_path / "a.csv").write_text("x,who\n3,2\n")
    with pytest.raises(InputError, match="the same in every file"):
        connect()


def test_spark_reads_folders_alike(spark_session: Any, tmp_path: Path) -> None:
    found = []
    for names in (["k=1", "k=2"], ["k=1", "k=ann"]):
        folder = tmp_path / "t.parquet"
        write(folder, names)
        for pattern in ("k=*/*.parquet", "*/*.parquet", ""):
            path = folder / pattern if pattern else folder
            database = tulle.Database.connect("local[1]", tables={"t": path}, owners={"t": "who"})
            found.append((pattern, dict(database.schema.tables["t"])))
            database.close()
    assert found[:3] == found[3:]
    assert [columns.get("k") for _, columns in found[:3]] == ["string", None, None]
