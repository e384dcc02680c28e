"""Which frames of Spark have columns and types that their rows chose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tulle
from tulle.core.errors import InputError
from tulle.sql.engines.spark import plans


@pytest.mark.filterwarnings("ignore")
def test_frames_whose_types_spark_guessed_are_refused(
    spark_session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "head.csv").write_text("id,n\n1,5\n2,7\n")
    (tmp_path / "bare.csv").write_text("1,5\n2,7\n")
    (tmp_path / "rows.json").write_text('{"id": 1, "n": 5}\n{"id": 2, "n": 7}\n')
    head, bare, rows = (str(tmp_path / name) for name in ("head.csv", "bare.csv", "rows.json"))
    folders = tmp_path / "folders"
    spark_session.range(4).selectExpr("id", "id % 2 AS k").write.partitionBy("k").parquet(
        str(folders)
    )
    spark_session.range(4).write.parquet(str(tmp_path / "plain"))
    frames = {
        "inferred": spark_session.read.csv(head, header=True, inferSchema=True),
        "counted": spark_session.read.csv(bare),
        "objects": spark_session.read.json(rows),
        "parts": spark_session.read.parquet(str(folders)),
        "named": spark_session.read.csv(head, header=True, inferSchema=False),
        "declared": spark_session.read.schema("id INT, n INT").csv(bare),
        "plain": spark_session.read.parquet(str(tmp_path / "plain")),
        "pinned": spark_session.read.parquet(str(folders)).localCheckpoint(),
        "strict": spark_session.read.option("datetimeRebaseMode", "exception").parquet(
            str(tmp_path / "plain")
        ),
    }
    try:
        for name, frame in frames.items():
            frame.createOrReplaceTempView(name)
        spark_session.sql(f"CREATE TABLE listed (id INT, n INT) USING json LOCATION '{tmp_path}/j'")
        for name in ("inferred", "counted", "objects", "parts"):
            with pytest.raises(InputError, match="chose by looking at rows"):
                tulle.Database.connect(spark_session, owners={name: frames[name].columns[0]})
        with pytest.raises(InputError, match="may fail at a row"):
            tulle.Database.connect(spark_session, owners={"strict": "id"})
        fine = dict.fromkeys(("named", "declared", "plain", "pinned", "listed"), "id")
        database = tulle.Database.connect(spark_session, owners=fine)
        assert tulle.sql("SELECT SUM(n) FROM declared").truth(database) == 12
        database.close()
        tables = {"parted": folders / "k=*/*.parquet"}
        database = tulle.Database.connect("local[2]", tables=tables, owners={"parted": "id"})
        assert tulle.sql("SELECT COUNT(*) FROM parted WHERE k = '1'").truth(database) == 2
        database.close()
        # A broken version: a row of somebody changes the type of a column.
        monkeypatch.setattr(plans, "_is_guessed", lambda _: False)
        seen = set()
        for value in ("7", "x"):
            (tmp_path / "head.csv").write_text(f"id,n\n1,5\n2,{value}\n")
            made = spark_session.read.csv(head, header=True, inferSchema=True)
            made.createOrReplaceTempView("inferred")
            database = tulle.Database.connect(spark_session, owners={"inferred": "id"})
            seen.add(database.schema.tables["inferred"]["n"])
            database.close()
        assert seen == {"int", "string"}
    finally:
        for name in (*frames, "parted"):
            spark_session.catalog.dropTempView(name)
        spark_session.sql("DROP TABLE IF EXISTS listed")
