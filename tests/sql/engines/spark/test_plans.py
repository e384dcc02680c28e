"""Which frames of Spark have columns and types that their rows chose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import tulle
from tulle.core.errors import InputError, QueryError
from tulle.sql.engines.base import EngineError
from tulle.sql.engines.spark import engine as spark
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


# --- values in files ------------------------------------------------------------------------------

STORED = (
    *(pa.int8(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64(), pa.bool_()),
    *(pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32(), pa.timestamp("ms")),
    *(pa.timestamp("us"), pa.timestamp("ms", tz="UTC"), pa.decimal128(4, 1)),
    *(pa.decimal128(12, 3), pa.decimal128(30, 1), pa.decimal128(38, 37)),
)
"""Types that a Parquet file may have, and Spark reads."""

FEW = (pa.int64(), pa.timestamp("ms"), pa.decimal128(30, 1))
READ = (
    *("SELECT COUNT(*) FROM stored WHERE v = v", "SELECT COUNT(DISTINCT v) FROM stored"),
    *("SELECT v, COUNT(*) FROM stored GROUP BY v", "SELECT COUNT(v) FROM stored"),
)


def any_values(kind: pa.DataType, count: int, draw: np.random.Generator) -> pa.Array:
    """Return values of which nobody has looked whether they are any: random bits."""
    if kind in (pa.string(), pa.binary()):
        held = [draw.bytes(3) for _ in range(count)]
        return pa.array(held, pa.binary()).view(kind)
    bits = draw.integers(0, 256, count * max(kind.bit_width // 8, 1), dtype=np.uint8)
    if pa.types.is_decimal(kind):
        # As many bytes as a file has for so many digits: what is above them says the sign alone.
        wide = -(-int(np.ceil(np.log2(10.0**kind.precision) + 1)) // 8)
        parts = bits.reshape(count, -1)
        parts[:, wide:] = np.where(parts[:, wide - 1] > 127, 255, 0)[:, None]
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(bits.tobytes())])


def became(session: Any, folder: Path, kinds: Any, texts: Any) -> dict[str, str]:
    """Return what becomes of files with any bits of these types, and of a line of many columns."""
    found, draw = {}, np.random.default_rng()
    many = folder / "many.csv"
    many.write_text(f"id,v\n1,2\n2,{',' * 30000}\n")
    for place, kind in enumerate((*kinds, "CSV")):
        if kind == "CSV":
            frame = session.read.csv(str(many), schema="id INT, v STRING", header=True)
        else:
            file = str(folder / f"{place}.parquet")
            rows = {"id": pa.array(range(99), pa.int32()), "v": any_values(kind, 99, draw)}
            pyarrow.parquet.write_table(pa.table(rows), file)
            frame = session.read.parquet(file)
        frame.createOrReplaceTempView("stored")
        try:
            database = tulle.Database.connect(session, owners={"stored": "id"})
        except InputError:
            found[str(kind)] = "refused"
            continue
        found[str(kind)] = "answered"
        try:
            for text in texts:
                tulle.sql(text).truth(database)
        except EngineError:
            found[str(kind)] = "stopped"
        except QueryError:
            assert str(kind) == "binary"
        database.close()
    session.catalog.dropTempView("stored")
    return found


@pytest.mark.filterwarnings("ignore")
def test_values_that_spark_cannot_read_are_refused_when_connecting(
    spark_session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = ("timestamp[ms]", "decimal128(30, 1)", "CSV")
    found = became(spark_session, tmp_path, FEW, READ[:1])
    assert found == {"int64": "answered", **dict.fromkeys(wrong, "refused")}
    # A broken version reads nothing before it is asked.
    monkeypatch.setattr(spark, "columns_to_read", lambda _: [])
    found = became(spark_session, tmp_path, FEW, READ[:1])
    assert found == {"int64": "answered", **dict.fromkeys(wrong, "stopped")}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_values_of_any_type_are_read_or_refused(spark_session: Any, tmp_path: Path) -> None:
    found = became(spark_session, tmp_path, STORED, READ)
    assert "stopped" not in found.values()
    assert {"string", "date32[day]", "timestamp[us]", "uint64"} <= {
        kind for kind, what in found.items() if what == "answered"
    }


@pytest.mark.filterwarnings("ignore")
def test_a_quote_that_is_not_closed_swallows_nobody(
    spark_session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a program says that records may go on over several lines."""

    def people(cell: str, *, several: bool) -> int:
        (tmp_path / "q.csv").write_text(f"id,v\n1,{cell}\n2,a\n3,a\n")
        reader = spark_session.read.schema("id INT, v STRING").option("multiLine", several)
        reader.csv(str(tmp_path / "q.csv"), header=True).createOrReplaceTempView("quoted")
        database = tulle.Database.connect(spark_session, owners={"quoted": "id"})
        return int(tulle.sql("SELECT COUNT(*) FROM quoted").truth(database))

    assert people("b", several=False) == people('"b', several=False) == 3
    with pytest.raises(InputError, match="swallow"):
        people("b", several=True)
    # A broken version takes such a frame.
    monkeypatch.setattr(plans, "_swallows", lambda _: False)
    assert people("b", several=True) == 3
    assert people('"b', several=True) == 1
    spark_session.catalog.dropTempView("quoted")


@pytest.mark.filterwarnings("ignore")
def test_a_value_that_cannot_be_read_ends_no_file(
    spark_session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def people(moment: int) -> int:
        moments = pa.array([0, moment, 5], pa.int64()).view(pa.timestamp("ms"))
        rows = {"id": pa.array([1, 2, 3], pa.int32()), "v": moments}
        pyarrow.parquet.write_table(pa.table(rows), str(tmp_path / "m.parquet"))
        reader = spark_session.read.option("ignoreCorruptFiles", True)
        reader.parquet(str(tmp_path / "m.parquet")).createOrReplaceTempView("ended")
        database = tulle.Database.connect(spark_session, owners={"ended": "id"})
        return int(tulle.sql("SELECT COUNT(*) FROM ended WHERE v IS NOT NULL").truth(database))

    with pytest.raises(InputError, match="swallow"):
        people(7)
    # A broken version takes such a frame: two others are gone with the value.
    monkeypatch.setattr(plans, "_swallows", lambda _: False)
    assert people(7) == 3
    assert people(2**62) < 2
    spark_session.catalog.dropTempView("ended")
