"""DuckDB: values that files can bring and that it does not write out make nothing stop."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow
import pytest

import tulle
from tulle.sql.engines.duckdb import dialect
from tulle.sql.queries import relation_of

LEAST, MOST = -(2**63), 2**63 - 1
BEYOND = {
    pyarrow.time32("s"): (86_401, 2**31 - 1, -1),
    pyarrow.time32("ms"): (2**31 - 1, -(2**31)),
    pyarrow.time64("us"): (MOST, LEAST, -1),
    pyarrow.time64("ns"): (MOST, LEAST, -5),
    pyarrow.timestamp("s"): (MOST, LEAST),
    pyarrow.timestamp("ms"): (MOST, LEAST),
    pyarrow.timestamp("us"): (MOST, LEAST, LEAST + 1, -9223372022400000001),
    pyarrow.timestamp("ns"): (MOST, LEAST),
    pyarrow.timestamp("us", "UTC"): (MOST, LEAST),
    pyarrow.date32(): (2**31 - 1, -(2**31)),
}
"""Numbers behind values of Arrow's types that are no time of a day, or no day that DuckDB has."""

SOME = (pyarrow.time64("us"), pyarrow.time64("ns"), pyarrow.timestamp("us"))

QUESTIONS = (
    "SELECT COUNT(*) FROM t WHERE CAST(x AS TEXT) > 'a'",
    "SELECT COUNT(*) FROM t WHERE DATE_DIFF('day', x, x) > 1",
    "SELECT COUNT(*) FROM t WHERE x + INTERVAL 1 HOUR > x",
    "SELECT COUNT(DISTINCT x) FROM t",
    "SELECT x, COUNT(*) FROM t GROUP BY x",
    "SELECT CAST(x AS TEXT), COUNT(*) FROM t GROUP BY CAST(x AS TEXT)",
)


def stored(kind: Any, numbers: tuple[int, ...]) -> Any:
    """Return values of a type of Arrow by the numbers that they are stored as."""
    size = kind.bit_width // 8
    held = b"".join(number.to_bytes(size, "little", signed=True) for number in numbers)
    return pyarrow.Array.from_buffers(kind, len(numbers), [None, pyarrow.py_buffer(held)])


def outcome(kind: Any, numbers: tuple[int, ...], text: str) -> str:
    """Return what asking a table of DuckDB's own that was made from a frame gives or raises."""
    connection = duckdb.connect()
    frame = pyarrow.table({"id": list(range(len(numbers))), "x": stored(kind, numbers)})
    connection.register("frame", frame)
    connection.execute("CREATE TABLE t AS SELECT * FROM frame")
    database = tulle.Database.connect(connection, owners={"t": "id"})
    given: dict[str, Any] = {"keys_per_person": 1} if "GROUP BY" in text else {}
    try:
        tulle.release(database, tulle.sql(text, **given), unit="participant", epsilon=1, delta=1e-6)
    except tulle.TulleError as error:
        return f"{type(error).__name__}: {error}"
    return "answered"


def check(text: str, kinds: dict[Any, tuple[int, ...]]) -> None:
    for kind, numbers in kinds.items():
        usual = outcome(kind, (1, 2), text)
        assert not usual.startswith("EngineError"), (kind, usual)
        for number in numbers:
            assert outcome(kind, (1, 2, number), text) == usual, (kind, number)


def test_no_stored_time_makes_duckdb_stop() -> None:
    check(QUESTIONS[0], BEYOND)
    for text in QUESTIONS[1:]:
        check(text, {kind: BEYOND[kind][1:2] for kind in SOME})


@pytest.mark.slow
@pytest.mark.parametrize("text", QUESTIONS[1:])
def test_no_stored_time_of_any_type_makes_duckdb_stop(text: str) -> None:
    check(text, BEYOND)


def test_times_written_as_they_are_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialect, "_shown", lambda given: given.node)
    for kind in SOME:
        with pytest.raises(AssertionError):
            check(QUESTIONS[0], {kind: BEYOND[kind]})


def test_times_are_written_as_before() -> None:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT 1 AS id, TIMESTAMP '-infinity' AS x, TIME '24:00:00' AS y"
    )
    database = tulle.Database.connect(connection, owners={"t": "id"})
    for condition in ("CAST(x AS TEXT) = '-infinity'", "CAST(y AS TEXT) = '24:00:00'"):
        query = tulle.sql(f"SELECT COUNT(*) FROM t WHERE {condition}")
        assert relation_of(database, query).total == query.truth(database) == 1
